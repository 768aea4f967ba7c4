package compaction

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names come and go for as long as the operator runs.
func TestStringsAreBounded(t *testing.T) {
	s := &Strings{}
	for i := range 3 * maxStrings {
		s.share(fmt.Sprint(i))
		require.LessOrEqual(t, len(s.known), maxStrings)
	}
}
