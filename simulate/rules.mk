# The published figures of four papers against the simulator (docs/reproduction.md).
.PHONY: reproduce reproduce-page
reproduce:
	@$(GO) run ./simulate/reproduce

reproduce-page:
	@$(GO) run ./simulate/reproduce -write
