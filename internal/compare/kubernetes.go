package compare

import (
	"strconv"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// quantityNode compares by value: 1000m is 1.
type quantityNode struct{}

func (quantityNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && (*resource.Quantity)(p).IsZero()
}

func (quantityNode) encode(b []byte, p unsafe.Pointer) []byte {
	q := (*resource.Quantity)(p)
	b = append(b, '"')
	if v, whole := q.AsInt64(); whole && q.Format == resource.BinarySI && v >= 1024 {
		return append(appendBinary(b, v), '"')
	}
	number, suffix := q.CanonicalizeBytes(b[len(b):])
	b = append(b, number...) // onto itself, where b had room for it
	b = append(b, suffix...)
	return append(b, '"')
}

// appendBinary is the canonical form of 64Mi and the like, for which
// CanonicalizeBytes would allocate.
func appendBinary(b []byte, v int64) []byte {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit := 0
	for v%1024 == 0 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	return append(strconv.AppendInt(b, v, 10), units[unit]...)
}

func (n quantityNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w := *(*resource.Quantity)(want) // a copy, since Cmp may change its receiver's form
	return w.Cmp(*(*resource.Quantity)(have)) == 0 || differs(t, n, want, have)
}

// intOrStringNode leaves out a zero whose field says omitempty, which encoding/json
// would not: a Service's targetPort of 0 means that nobody set it.
type intOrStringNode struct{}

func (intOrStringNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && *(*intstr.IntOrString)(p) == intstr.IntOrString{}
}

func (intOrStringNode) encode(b []byte, p unsafe.Pointer) []byte {
	v := (*intstr.IntOrString)(p)
	if v.Type == intstr.String {
		return appendString(b, v.StrVal)
	}
	return intNode{size: unsafe.Sizeof(v.IntVal)}.encode(b, unsafe.Pointer(&v.IntVal))
}

func (n intOrStringNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := (*intstr.IntOrString)(want), (*intstr.IntOrString)(have)
	same := w.Type == h.Type && (w.Type == intstr.String && w.StrVal == h.StrVal ||
		w.Type == intstr.Int && w.IntVal == h.IntVal)
	return same || differs(t, n, want, have)
}

// timeNode compares in seconds, as the API stores a time.
type timeNode struct{}

func (timeNode) omitted(p unsafe.Pointer, _ bool) bool { return (*metav1.Time)(p).IsZero() }

func (timeNode) encode(b []byte, p unsafe.Pointer) []byte {
	t := (*metav1.Time)(p)
	if t.IsZero() {
		return append(b, "null"...)
	}
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339), '"')
}

func (n timeNode) covers(t *trace, want, have unsafe.Pointer) bool {
	return (*metav1.Time)(want).Unix() == (*metav1.Time)(have).Unix() || differs(t, n, want, have)
}
