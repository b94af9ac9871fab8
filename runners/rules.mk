# The plug-ins of engines in Python, beside the interposer, where medusa finds them for the engines that it starts; included by the
# root Makefile.
PLUGINS := runners/torch/python/medusa_graphs runners/pool/medusa_pool $(wildcard runners/vllm/medusa_vllm*)
build/lib/python: $(wildcard $(PLUGINS:%=%/*))
	@rm -rf $@ && mkdir -p $@
	cp -r $(PLUGINS) $@/
	rm -rf $@/*/__pycache__
