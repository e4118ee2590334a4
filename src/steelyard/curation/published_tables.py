"""Tables of published data sets whose columns or labels tell less than their authors do."""

from steelyard.core.types import JsonObject

PUBLISHED_TABLES: tuple[JsonObject, ...] = (
    # compar:IA, after utils/schemas/votes.sql of betagouv/ComparIA: the prompt is inside both conversations.
    {"prompt_column": [], "first_column": "conversation_a", "second_column": "conversation_b",
     "label_column": "chosen_model_name", "tie_column": "both_equal",
     "author_column": ["model_a_name", "model_b_name"], "judge_column": "visitor_id", "time_column": "timestamp"},
    # Arena 55k of LMSYS: lists of turns as JSON text, and a column of 0 and 1 for each vote.
    {"prompt_column": ["prompt"], "first_column": "response_a", "second_column": "response_b",
     "label_column": ["winner_model_a", "winner_model_b"], "tie_column": "winner_tie",
     "author_column": ["model_a", "model_b"]},
    # OpenAI's comparisons of summaries (openai/summarize_from_feedback): choice counts from 0.
    {"prompt_column": ["info.post", "info.article"], "first_column": "summaries.0.text",
     "second_column": "summaries.1.text", "label_column": "choice", "labels": {"0": "left", "1": "right"},
     "author_column": ["summaries.0.policy", "summaries.1.policy"], "judge_column": "worker", "batch_column": "batch"},
    # OpenAI's ratings of one summary each, beside those comparisons.
    {"prompt_column": ["info.post", "info.article"], "response_column": "summary.text",
     "rating_column": "summary.axes.overall", "author_column": "summary.policy", "judge_column": "worker"},
    # SHP of Stanford: 1 is the first answer, 0 the second.
    {"prompt_column": ["history"], "first_column": "human_ref_A", "second_column": "human_ref_B",
     "label_column": "labels", "labels": {"1": "left", "0": "right"}},
    {"prompt_column": ["question.full_text"], "response_column": ["answer_0", "answer_1"],
     "rating_column": ["score_0", "score_1"]},  # OpenAI's webgpt_comparisons: scores from -1 to 1
    # The rows of OpenAI's preference fine-tuning.
    {"prompt_column": ["input.messages"], "chosen_column": "preferred_output",
     "rejected_column": "non_preferred_output"},
    # Prometheus' Preference and Feedback Collection: ``instruction`` is the request to the judge.
    {"prompt_column": ["orig_instruction"], "first_column": "orig_response_A", "second_column": "orig_response_B",
     "label_column": "orig_preference", "reference_column": "orig_reference_answer", "judge_kind": "llm"},
    {"prompt_column": ["orig_instruction"], "response_column": "orig_response", "rating_column": "orig_score",
     "reference_column": "orig_reference_answer", "judge_kind": "llm"},
)  # fmt: skip
"""The settings of the format ``columns`` for each of them."""
