"""Chats: language models that answer; requests in, replies out."""
