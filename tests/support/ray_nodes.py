"""A real Ray cluster on this machine, for the tests of the engine: a head without cores, and worker nodes."""

from contextlib import contextmanager


@contextmanager
def ray_nodes(number):
    """Start a cluster with worker nodes of one core each; it ends with the block."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(number):
        cluster.add_node(num_cpus=1)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
