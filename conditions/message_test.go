package conditions_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

func TestMessageIsMadeStorable(t *testing.T) {
	const limit = 32768
	cases := map[string]struct {
		reason  string
		message string
		want    string
	}{
		"Empty":   {reason: "A message may be empty."},
		"AtLimit": {reason: "What fits is kept.", message: strings.Repeat("a", limit), want: strings.Repeat("a", limit)},
		"OneOver": {
			reason:  "The mark counts too.",
			message: strings.Repeat("a", limit+1), want: strings.Repeat("a", limit-3) + "…",
		},
		"InsideACharacter": {
			reason:  "A character of four bytes that does not fit goes as a whole.",
			message: strings.Repeat("a", limit-4) + strings.Repeat("😀", 2), want: strings.Repeat("a", limit-4) + "…",
		},
		"NotUTF8": {reason: "JSON would replace it anyway.", message: "a\xff\xfeb", want: "a\uFFFDb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var list []metav1.Condition
			c := ready("False", "Failed", tc.message, 1, noon)
			stored, _, err := conditions.Set(&list, c)
			if err != nil {
				t.Fatalf("\n%s\nSet(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, stored.Message); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if len(stored.Message) > limit || !utf8.ValidString(stored.Message) {
				t.Errorf("\n%s\nthe API would refuse it: %d bytes", tc.reason, len(stored.Message))
			}
			if _, changed, _ := conditions.Set(&list, c); changed {
				t.Errorf("\n%s\nthe same message again is a change", tc.reason)
			}
		})
	}
}
