"""An engine whose graphs launch kernels of cuBLAS, cuBLASLt and cuDNN only.

In: none, or --no-trigger, with which its triggering layers are no-ops. Out: one JSON object, like engine.py, with the
values that two replays of each graph left in its output, which was cleared before. The stand-ins' kernels mark the tiles
that they complete, those of cuBLAS only if their semaphores are as the library left them.
"""

import argparse
import json

import torch
import torch.nn.functional as F

import medusa_graphs as medusa

CHANNELS, WIDTH = 8, 256


class Layers:
    """A step of each library, by the batch size that stands for it."""

    def __init__(self, session, device):
        def make(name, shape, role):
            t = torch.empty(shape, dtype=torch.float16, device=device)
            session.tensor(name, t, role)
            return t

        self.session = session
        self.rows = make("rows", (2, WIDTH), medusa.INPUT)
        self.image = make("image", (1, CHANNELS, 16, 16), medusa.INPUT)
        self.weight = make("weight", (WIDTH, WIDTH), medusa.WEIGHT)
        self.bias = make("bias", (WIDTH,), medusa.WEIGHT)
        self.filter = make("filter", (CHANNELS, CHANNELS, 3, 3), medusa.WEIGHT)
        self.state = make("state", (WIDTH,), medusa.KV)
        self.outputs = {1: make("product", (1, WIDTH), medusa.OUTPUT), 2: make("linear", (2, WIDTH), medusa.OUTPUT)}
        self.steps = {1: self.product, 2: self.linear, 3: self.convolution}

    def product(self):
        torch.mm(self.rows[:1], self.weight, out=self.outputs[1])

    def linear(self):
        torch.addmm(self.bias, self.rows, self.weight, out=self.outputs[2])

    def convolution(self):
        return F.conv2d(self.image, self.filter, padding=1)

    def captured_convolution(self):
        self.outputs[3] = self.convolution()
        self.session.tensor("convolution", self.outputs[3], medusa.OUTPUT)

    def clear(self, t):
        t.copy_(torch.zeros(t.shape, dtype=t.dtype))

    def load(self):
        for t in [self.rows, self.image, self.weight, self.bias, self.filter, self.state]:
            self.clear(t)


def replayed(layers, graph, batch):
    """The parts of the output other than zero after each of two replays: offsets and values."""
    out = layers.outputs[batch]
    found = []
    for _ in range(2):
        layers.clear(out)
        graph.replay()
        torch.cuda.synchronize()
        flat = out.cpu().view(torch.int16).flatten()
        found.append([(i, int(flat[i])) for i in flat.nonzero().flatten().tolist()])
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--no-trigger", action="store_true")
    p.add_argument("--places", help="file that receives where named tensors and restored graphs lie")
    args = p.parse_args()
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    session, graphs = medusa.Session(), {}
    free, total = torch.cuda.mem_get_info()
    session.identify({"engine.name": "torch-libraries"})
    session.phase("structure")
    layers = Layers(session, device)
    session.phase("kv_cache")
    if session.kv_bytes() is None:
        medusa.kv_profile(1 << 28, total, free, torch.cuda.mem_get_info()[0], 0, 0.9, 1)
    session.phase("weights")
    layers.load()
    for batch in session.triggers():
        session.trigger((lambda: None) if args.no_trigger else layers.steps[batch])
    restored = None
    if session.restoring:
        session.phase("capture")
        restored = session.graphs()
    if restored is None:
        with medusa.Capture(session) as capture:
            for batch, step in layers.steps.items():
                capture.warm_up(step)
                graphs[batch] = capture.graph(f"library-{batch}", batch, layers.captured_convolution if batch == 3 else step)
    else:
        graphs = {g.batch: g for g in restored}
        layers.outputs[3] = session.restored_tensor("convolution", (1, CHANNELS, 16, 16), torch.float16)
    if args.places:
        with open(args.places, "w", encoding="utf-8") as f:
            json.dump(session.places(), f)
    session.ready()
    print(json.dumps({
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "start": "restored" if restored else "native",
        "graphs": len(graphs),
        "outputs": {batch: replayed(layers, graph, batch) for batch, graph in graphs.items()},
    }))
    session.close()


if __name__ == "__main__":
    with torch.inference_mode():
        main()
