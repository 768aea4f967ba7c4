package conditions

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ErrInvalid is the error that [Set] and [List.Set] wrap if the API server would refuse the condition, or if another
// argument is wrong. It is a mistake in the program: the same call fails again, so retrying does not help.
var ErrInvalid = errors.New("invalid condition")

func errNilList(conditionType string) error {
	return fmt.Errorf("%w %q: the pointer to the list is nil: pass the address of the list, such as &obj.Status.Conditions",
		ErrInvalid, conditionType)
}

// maxType is the MaxLength of metav1.Condition's type. The longest prefix (253) and the longest name (63) together would
// exceed it.
const maxType = 316

const (
	typeHint   = "name the condition in CamelCase, such as Ready"
	statusHint = "use True, False or Unknown"
	reasonHint = "use a CamelCase word, such as Succeeded"
)

// Validate returns an error that names everything the API server would refuse in a metav1.Condition, or nil. It does not
// wrap [ErrInvalid]. The rules are:
//
//   - type: CamelCase or foo.example.com/CamelCase. A prefix is a DNS subdomain of at most 253 characters, the name has at
//     most 63 characters (a rule of apimachinery; the pattern in the schema has no such limit), and both at most 316.
//   - status: True, False or Unknown.
//   - reason: required, ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$, so no spaces and no full stops; at most 1024 characters.
//   - message: may be empty; at most 32768 bytes.
//   - observedGeneration: not negative.
//
// LastTransitionTime is not checked, because [Set] fills it in. The rules come from the validation markers of
// metav1.Condition and from ValidateCondition in k8s.io/apimachinery/pkg/apis/meta/v1/validation.
func Validate(c metav1.Condition) error {
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.Unix(0, 0)
	}
	faults := metav1validation.ValidateCondition(c, nil)
	if len(c.Type) > maxType {
		faults = append(faults, field.TooLong(field.NewPath("type"), "", maxType))
	}
	hints := map[string]string{"type": typeHint, "status": statusHint, "reason": reasonHint}
	for _, fault := range faults {
		if fault.Type == field.ErrorTypeRequired {
			fault.Detail = hints[fault.Field]
		}
	}
	return faults.ToAggregate()
}

// maxMessage is the limit of metav1.Condition's message. The schema counts characters and apimachinery's validation counts
// bytes; a limit in bytes satisfies both.
const maxMessage = 32 * 1024

// truncate returns a message that the API server accepts. Invalid UTF-8 is replaced here because the JSON encoder would
// replace it anyway. The stored message would then differ from the message that was set, in every reconcile.
func truncate(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	end := maxMessage - len(mark)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + mark
}
