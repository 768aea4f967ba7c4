package conditions

import (
	"errors"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ErrInvalid is what [Set] returns, wrapped with the reason, for a condition that the API server would refuse.
// It is a mistake in the program and does not heal by retrying.
var ErrInvalid = errors.New("invalid condition")

// maxType is the MaxLength of metav1.Condition's type. A prefix of 253 and a name of 63 characters would exceed it.
const maxType = 316

const (
	typeHint   = "name the condition in CamelCase, such as Ready"
	statusHint = "use True, False or Unknown"
	reasonHint = "give a CamelCase word, such as Succeeded"
)

// Validate says what the API refuses in a metav1.Condition, or nil. All faults are named at once.
//
//   - type: CamelCase or foo.example.com/CamelCase; a DNS subdomain of at most 253 characters before the slash, at most 63
//     after it (apimachinery's rule; the schema's pattern has no such limit), 316 in all
//   - status: True, False or Unknown
//   - reason: required, ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$, so no spaces and no full stops; at most 1024 characters
//   - message: may be empty; at most 32768 bytes
//   - observedGeneration: not negative
//
// LastTransitionTime is not checked: [Set] fills it in. The rules are the validation markers of metav1.Condition and
// ValidateCondition in k8s.io/apimachinery/pkg/apis/meta/v1/validation.
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

// maxMessage is metav1.Condition's limit. The schema counts characters, apimachinery's validation bytes: bytes satisfy both.
const maxMessage = 32 * 1024

// cut makes a message storable. Invalid UTF-8 goes here because JSON would replace it on the way out,
// and what comes back would then differ from what is set, on every pass.
func cut(message string) string {
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
