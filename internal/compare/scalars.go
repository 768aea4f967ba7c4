package compare

import (
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type stringComparer struct{}

func (stringComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && *(*string)(p) == ""
}

func (stringComparer) encode(b []byte, p unsafe.Pointer) []byte {
	return appendString(b, *(*string)(p))
}

func (c stringComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	return *(*string)(want) == *(*string)(have) || recordValues(r, c, want, have)
}

type boolComparer struct{}

func (boolComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool { return omitEmpty && !*(*bool)(p) }

func (boolComparer) encode(b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendBool(b, *(*bool)(p))
}

func (c boolComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	return *(*bool)(want) == *(*bool)(have) || recordValues(r, c, want, have)
}

type intComparer struct{ size uintptr }

func (c intComparer) value(p unsafe.Pointer) int64 {
	switch c.size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func (c intComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && c.value(p) == 0
}

func (c intComparer) encode(b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendInt(b, c.value(p), 10)
}

func (c intComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	return c.value(want) == c.value(have) || recordValues(r, c, want, have)
}

type uintComparer struct{ size uintptr }

func (c uintComparer) value(p unsafe.Pointer) uint64 {
	switch c.size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func (c uintComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && c.value(p) == 0
}

func (c uintComparer) encode(b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendUint(b, c.value(p), 10)
}

func (c uintComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	return c.value(want) == c.value(have) || recordValues(r, c, want, have)
}

// quantityComparer compares quantities by their amount: 1000m is 1.
type quantityComparer struct{}

func (quantityComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && (*resource.Quantity)(p).IsZero()
}

func (quantityComparer) encode(b []byte, p unsafe.Pointer) []byte {
	q := (*resource.Quantity)(p)
	b = append(b, '"')
	if v, whole := q.AsInt64(); whole && q.Format == resource.BinarySI && v >= 1024 {
		return append(appendBinary(b, v), '"')
	}
	number, suffix := q.CanonicalizeBytes(b[len(b):])
	b = append(b, number...) // number may be in this place already, if b had the capacity
	b = append(b, suffix...)
	return append(b, '"')
}

// appendBinary appends the canonical form of a whole binary quantity, such as 64Mi. CanonicalizeBytes would allocate for
// it.
func appendBinary(b []byte, v int64) []byte {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit := 0
	for v%1024 == 0 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	return append(strconv.AppendInt(b, v, 10), units[unit]...)
}

func (c quantityComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w := *(*resource.Quantity)(want) // a copy, since Cmp may change the representation of its receiver
	return w.Cmp(*(*resource.Quantity)(have)) == 0 || recordValues(r, c, want, have)
}

// intOrStringComparer is for intstr.IntOrString. Unlike encoding/json, it leaves out a zero in a field with omitempty: a
// Service's targetPort of 0 is unset.
type intOrStringComparer struct{}

func (intOrStringComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && *(*intstr.IntOrString)(p) == intstr.IntOrString{}
}

func (intOrStringComparer) encode(b []byte, p unsafe.Pointer) []byte {
	v := (*intstr.IntOrString)(p)
	if v.Type == intstr.String {
		return appendString(b, v.StrVal)
	}
	return intComparer{size: unsafe.Sizeof(v.IntVal)}.encode(b, unsafe.Pointer(&v.IntVal))
}

func (c intOrStringComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := (*intstr.IntOrString)(want), (*intstr.IntOrString)(have)
	same := w.Type == h.Type && (w.Type == intstr.String && w.StrVal == h.StrVal ||
		w.Type == intstr.Int && w.IntVal == h.IntVal)
	return same || recordValues(r, c, want, have)
}

// timeComparer compares times by whole seconds, as the API stores them.
type timeComparer struct{}

func (timeComparer) omitted(p unsafe.Pointer, _ bool) bool { return (*metav1.Time)(p).IsZero() }

func (timeComparer) encode(b []byte, p unsafe.Pointer) []byte {
	t := (*metav1.Time)(p)
	if t.IsZero() {
		return append(b, "null"...)
	}
	return append(t.UTC().AppendFormat(append(b, '"'), time.RFC3339), '"')
}

func (c timeComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	return (*metav1.Time)(want).Unix() == (*metav1.Time)(have).Unix() || recordValues(r, c, want, have)
}

// appendString appends s as a JSON string. Clusters store hashes of these bytes, so the escapes must not change with the
// version of an encoder.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	clean := 0 // s up to here is appended already
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[clean:i]...), `\ufffd`...)
			i++
			clean = i
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[clean:i]...)
		if c == '"' || c == '\\' {
			b = append(b, '\\', c)
		} else {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		clean = i
	}
	return append(append(b, s[clean:]...), '"')
}
