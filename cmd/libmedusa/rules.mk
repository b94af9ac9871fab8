# The restore engine for engines that are not written in Go; included by the root Makefile. A C library in Go needs cgo, and Go
# itself tracks its sources.
.PHONY: build/lib/libmedusa.so
build/lib/libmedusa.so:
	@mkdir -p $(@D)
	CGO_ENABLED=1 $(GO) build -buildmode=c-shared -o $@ ./cmd/libmedusa
	cp cmd/libmedusa/libmedusa.h $(@D)/
