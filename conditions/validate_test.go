package conditions_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// These are the validation markers of metav1.Condition, which controller-gen writes into every
// CustomResourceDefinition.
var (
	typePattern = regexp.MustCompile(
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
)

func schemaAllows(c metav1.Condition) bool {
	return typePattern.MatchString(c.Type) && len(c.Type) <= 316 &&
		reasonPattern.MatchString(c.Reason) && len(c.Reason) <= 1024 &&
		len(c.Message) <= 32768 && c.ObservedGeneration >= 0
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason    string
		condition metav1.Condition
		valid     bool
	}{
		"Plain":             {"The common case.", metav1.Condition{Type: "Ready", Reason: "Done"}, true},
		"Prefixed":          {"A type may have a domain as prefix.", metav1.Condition{Type: "foo.example.com/Ready", Reason: "Done"}, true},
		"OneLetter":         {"The shortest that is allowed.", metav1.Condition{Type: "R", Reason: "D"}, true},
		"ReasonJoined":      {"Commas and colons are for joined reasons.", metav1.Condition{Type: "Ready", Reason: "A,B:C_"}, true},
		"ReasonEndsInColon": {"A separator must stand between two words.", metav1.Condition{Type: "Ready", Reason: "A:"}, false},
		"ReasonFullStop":    {"A full stop is not allowed, though Go's error types print with one.", metav1.Condition{Type: "Ready", Reason: "net.OpError"}, false},
		"ReasonHyphen":      {"A hyphen is not allowed.", metav1.Condition{Type: "Ready", Reason: "not-found"}, false},
		"ReasonDigitFirst":  {"A reason starts with a letter, so an HTTP code alone is not allowed.", metav1.Condition{Type: "Ready", Reason: "404"}, false},
		"ReasonNewline":     {"A trailing newline does not match the pattern's $.", metav1.Condition{Type: "Ready", Reason: "Done\n"}, false},
		"ReasonNotASCII":    {"Only ASCII letters are allowed.", metav1.Condition{Type: "Ready", Reason: "Fertigü"}, false},
		"TypeUpperPrefix":   {"A prefix is a DNS subdomain.", metav1.Condition{Type: "Example.com/Ready", Reason: "Done"}, false},
		"TypeTwoSlashes":    {"Only one prefix is allowed.", metav1.Condition{Type: "a/b/Ready", Reason: "Done"}, false},
		"ReasonLongest":     {"The limit itself is allowed.", metav1.Condition{Type: "Ready", Reason: strings.Repeat("A", 1024)}, true},
		"MessageTooLong": {
			"Set cuts the message, Validate refuses it.", metav1.Condition{Type: "Ready", Reason: "Done", Message: strings.Repeat("a", 32769)}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.condition.Status = metav1.ConditionTrue
			err := conditions.Validate(tc.condition)
			if valid := err == nil; valid != tc.valid || valid != schemaAllows(tc.condition) {
				t.Errorf("\n%s\nwant valid %v, schema says %v, got %v", tc.reason, tc.valid, schemaAllows(tc.condition), err)
			}
		})
	}
}

// FuzzValidate proves that Validate and Set accept nothing that the schema refuses.
func FuzzValidate(f *testing.F) {
	f.Add("Ready", "Done", "message", int64(1))
	f.Add("a.b/C", "A,B", "\xff", int64(-1))
	f.Fuzz(func(t *testing.T, conditionType, reason, message string, generation int64) {
		c := metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
		}
		if conditions.Validate(c) == nil && !schemaAllows(c) {
			t.Errorf("passed, but the API server refuses it: %#v", c)
		}
		var list []metav1.Condition
		stored, changed, err := conditions.Set(&list, c)
		if changed != (err == nil) || changed && !schemaAllows(stored) {
			t.Errorf("stored %#v, changed %v, error %v", stored, changed, err)
		}
	})
}

func TestSetMessage(t *testing.T) {
	const limit = 32768
	cases := map[string]struct {
		reason  string
		message string
		want    string
	}{
		"Empty":   {reason: "A message may be empty."},
		"AtLimit": {reason: "A message of the greatest length is kept.", message: strings.Repeat("a", limit), want: strings.Repeat("a", limit)},
		"OneOver": {
			reason:  "The result including the ellipsis is within the limit.",
			message: strings.Repeat("a", limit+1), want: strings.Repeat("a", limit-3) + "…",
		},
		"InsideACharacter": {
			reason:  "A character of four bytes is not cut in the middle.",
			message: strings.Repeat("a", limit-4) + strings.Repeat("😀", 2), want: strings.Repeat("a", limit-4) + "…",
		},
		"NotUTF8": {reason: "The JSON encoder would replace the bytes anyway.", message: "a\xff\xfeb", want: "a\uFFFDb"},
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
				t.Errorf("\n%s\nthe API server would refuse it: %d bytes", tc.reason, len(stored.Message))
			}
			if _, changed, _ := conditions.Set(&list, c); changed {
				t.Errorf("\n%s\nthe same message again is a change", tc.reason)
			}
		})
	}
}
