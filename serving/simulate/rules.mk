# The published figures of four papers against the simulator (docs/reproduction.md).
.PHONY: reproduce reproduce-page
reproduce:
	@$(GO) run ./serving/simulate/reproduce

reproduce-page:
	@$(GO) run ./serving/simulate/reproduce -write
