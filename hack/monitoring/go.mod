// Tests the rules and the dashboard of docs/monitoring with Prometheus' own modules, and traces with OpenTelemetry's. A module of
// its own, so that neither the library nor the examples require these.
module github.com/opblocks/opblocks/hack/monitoring

go 1.26.0

replace (
	github.com/opblocks/opblocks => ../..
	github.com/opblocks/opblocks/examples => ../../examples
)
