# The manifests of docs/kubernetes against the published types and schemas (docs/kubernetes/README.md).
.PHONY: test-kubernetes
test-kubernetes:
	scripts/modules docs/kubernetes/validate
