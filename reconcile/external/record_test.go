package external_test

import (
	"fmt"

	"github.com/opblocks/opblocks/reconcile/external"
)

// The status of an object may list its things, with the state of each.
func ExampleRecord_States() {
	record := external.Record{
		Things: []external.Reference{{Key: "carts"}, {Key: "orders", Pending: true}},
		Former: []external.Reference{{Key: "returns"}},
	}
	for key, state := range record.States() {
		fmt.Println(key, state)
	}
	single := external.Record{Reference: external.Reference{Key: "alice"}}
	for key, state := range single.States() {
		fmt.Println(key, state)
	}
	// Output:
	// carts Present
	// orders Pending
	// returns Deleting
	// alice Present
}
