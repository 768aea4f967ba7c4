package schedule

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Offset is an object's place in a spread: how long after a time that is due it starts, in whole seconds, from zero to less
// than the spread. It depends on the UID and the spread alone, and is the same in every pass, process, platform and version,
// so that many objects with one schedule do not start together, and each starts at equal distances.
//
// An object without a UID, as controller-runtime's fake client leaves it, has no offset, and neither has a spread of a second
// or less. See [Input] for how the offset goes together with the next time and with the deadline.
func Offset(uid types.UID, spread time.Duration) time.Duration {
	places := uint64(max(0, spread+time.Second-1) / time.Second)
	if uid == "" || places < 2 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return time.Duration(h.Sum64()%places) * time.Second
}
