package compare

import (
	"strconv"
	"unicode/utf8"
	"unsafe"
)

type stringNode struct{}

func (stringNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && *(*string)(p) == ""
}

func (stringNode) encode(b []byte, p unsafe.Pointer) []byte { return appendString(b, *(*string)(p)) }

func (n stringNode) covers(t *trace, want, have unsafe.Pointer) bool {
	return *(*string)(want) == *(*string)(have) || differs(t, n, want, have)
}

type boolNode struct{}

func (boolNode) omitted(p unsafe.Pointer, omitEmpty bool) bool { return omitEmpty && !*(*bool)(p) }

func (boolNode) encode(b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendBool(b, *(*bool)(p))
}

func (n boolNode) covers(t *trace, want, have unsafe.Pointer) bool {
	return *(*bool)(want) == *(*bool)(have) || differs(t, n, want, have)
}

type intNode struct{ size uintptr }

func (n intNode) value(p unsafe.Pointer) int64 {
	switch n.size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func (n intNode) omitted(p unsafe.Pointer, omitEmpty bool) bool { return omitEmpty && n.value(p) == 0 }

func (n intNode) encode(b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendInt(b, n.value(p), 10)
}

func (n intNode) covers(t *trace, want, have unsafe.Pointer) bool {
	return n.value(want) == n.value(have) || differs(t, n, want, have)
}

type uintNode struct{ size uintptr }

func (n uintNode) value(p unsafe.Pointer) uint64 {
	switch n.size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func (n uintNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	return omitEmpty && n.value(p) == 0
}

func (n uintNode) encode(b []byte, p unsafe.Pointer) []byte {
	return strconv.AppendUint(b, n.value(p), 10)
}

func (n uintNode) covers(t *trace, want, have unsafe.Pointer) bool {
	return n.value(want) == n.value(have) || differs(t, n, want, have)
}

// appendString appends s as a JSON string. It is our own so that the bytes, and with
// them hashes that are stored in clusters, do not follow an encoder's taste in escapes.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	clean := 0 // s up to here is in b
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
