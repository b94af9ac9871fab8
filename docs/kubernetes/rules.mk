# The manifests of docs/kubernetes against the published types and schemas (docs/kubernetes/README.md).
## Test: make test-kubernetes | the manifests of docs/kubernetes against published schemas
.PHONY: test-kubernetes
test-kubernetes:
	scripts/modules docs/kubernetes/validate
