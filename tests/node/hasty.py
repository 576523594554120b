"""A member that waits for its neighbours less long than the federation says, so that a test needs not."""

import nursery


def run(arguments, log, seconds):
    from confide.node.federation import Federation

    Federation.timeout = property(lambda self: seconds, lambda self, given: None)
    nursery.run_node(arguments, log)


def start(village, name, seconds):
    arguments = (village.arguments(name), str(village.folder / f"{name}.log"), seconds)
    village.jobs[name] = nursery.CONTEXT.Process(target=run, args=arguments, daemon=True)
    village.jobs[name].start()
