"""How many tokens of a request a step computes.

In: vLLM's configuration, the descriptor of a graph. Out: numbers of tokens, and where those of a request begin. Fails: never.
"""


def width(config):
    """Tokens of a request in a decode step."""
    return 1 + (config.speculative_config.num_speculative_tokens if config.speculative_config else 0)


def longest(config):
    """The most tokens of a request in a step that has a graph as a whole."""
    compilation, most = config.compilation_config, width(config)
    # mutant: requests of a graph for any step
    if compilation.cudagraph_mode.name == "FULL":  # for any step: the last request has the remaining tokens
        requests = {size: min(size, config.scheduler_config.max_num_seqs) for size in compilation.cudagraph_capture_sizes}
        most = max([most, *(size // n + size % n for size, n in requests.items())])
    return most


def starts(count, batch=None):
    """Where count requests begin among a batch's tokens, if all have the same number of tokens; without a batch, each has one."""
    if not batch:
        return list(range(count))
    tokens, requests = batch.num_tokens, batch.num_reqs or batch.num_tokens
    # mutant: tokens of a request in a replay
    return [min(i * (tokens // requests), tokens) for i in range(count)]
