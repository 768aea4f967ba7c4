// Package versions notices that resource versions have gone back. An API server that was restored from a backup issues the same versions
// again, for other contents. Then nothing that was remembered by version is valid any more.
package versions

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Epoch counts how often resource versions have gone back. If the count has changed since a version was remembered, the version is not
// valid any more. Epoch is safe for concurrent use. The zero value is ready to use.
type Epoch struct{ count atomic.Uint64 }

// Current returns the count.
func (e *Epoch) Current() uint64 { return e.count.Load() }

// Observe increments the count if the version of an object after an update is earlier than the version before it.
func (e *Epoch) Observe(before, after client.Object) {
	order, err := resourceversion.CompareResourceVersion(after.GetResourceVersion(), before.GetResourceVersion())
	if err == nil && order < 0 {
		e.count.Add(1)
	}
}
