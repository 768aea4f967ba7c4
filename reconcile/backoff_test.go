package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

func TestSpread(t *testing.T) {
	one, other := types.NamespacedName{Namespace: "shop", Name: "ann"}, types.NamespacedName{Namespace: "shop", Name: "bob"}
	assert.Equal(t, spread(time.Minute, one, 3), spread(time.Minute, one, 3), "the same again")
	assert.NotEqual(t, spread(time.Minute, one, 3), spread(time.Minute, other, 3), "objects that failed together part")
	assert.NotEqual(t, spread(time.Minute, one, 3), spread(time.Minute, one, 4), "and so do attempts")
	assert.Zero(t, spread(0, one, 0), "no delay stays none")
	for attempt := range 1000 {
		d := spread(time.Minute, one, attempt)
		assert.GreaterOrEqual(t, d, time.Minute)
		assert.LessOrEqual(t, d, time.Minute+6*time.Second, "a tenth, as the documentation says")
	}
}
