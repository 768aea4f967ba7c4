package schedule

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Offset returns how long after a scheduled time an object starts its run: a number of whole seconds, at least zero and less
// than spread. So many objects with the same schedule do not start at once. The offset depends only on the UID and the
// spread. It is the same in every reconcile, process, platform and version of this package, so the delay of an object never
// changes.
//
// Offset returns zero if the UID is empty, as with controller-runtime's fake client, or if spread is a second or less.
// See [Input.Offset] for its effect on deadline and blackout windows.
func Offset(uid types.UID, spread time.Duration) time.Duration {
	seconds := uint64(max(0, spread+time.Second-1) / time.Second)
	if uid == "" || seconds < 2 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum64()%seconds) * time.Second
}
