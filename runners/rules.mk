# The plug-ins of engines in Python, beside the interposer, where medusa finds them for the engines that it starts; included by the
# root Makefile. They are one distribution, in a folder and in a wheel.
PLUGINS   := runners/torch/python/medusa_graphs runners/pool/medusa_pool runners/vllm/medusa_vllm
RELEASE   := $(shell sed -n 's/^const release = "v\(.*\)"/\1/p' cmd/medusa/version.go)
DIST_INFO := medusa_graphs-$(RELEASE).dist-info

define plugins-in
	@rm -rf $(1) && mkdir -p $(1)/$(DIST_INFO)
	cp -r $(PLUGINS) $(1)/
	@rm -rf $(1)/*/__pycache__
	sed 's/@RELEASE@/$(RELEASE)/' runners/dist-info/METADATA >$(1)/$(DIST_INFO)/METADATA
	cp runners/dist-info/entry_points.txt $(1)/$(DIST_INFO)/
endef

build/lib/python: $(wildcard $(PLUGINS:%=%/*) runners/dist-info/*) cmd/medusa/version.go
	$(call plugins-in,$@)
