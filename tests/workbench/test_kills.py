"""The server is killed while people submit: nothing that it acknowledged is lost, nothing is there twice."""

from workbench_kills import check_whole, work_and_kill


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(database, address):
    workers, total = work_and_kill(database, address, num_kills=3, num_items=8)
    check_whole(database, workers, total)
