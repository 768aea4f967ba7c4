package ownedresources

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationApplied is set on every object that this package writes. Its value is the
// format's version, how the object was last written, and the hash of what was sent:
// v1:created:… or v1:applied:….
const AnnotationApplied = "opblocks.dev/applied"

// mark says how an object was last written.
type mark string

const (
	created mark = "v1:created:" // by POST: its fields have to be migrated before an apply
	applied mark = "v1:applied:" // by server-side apply
	foreign mark = ""            // not by us, or by a version that we do not know
)

func (m mark) value(s sum) string { return string(m) + string(s[:]) }

func splitMark(annotation string) (m mark, hash string) {
	for _, m := range []mark{applied, created} {
		if hash, ok := strings.CutPrefix(annotation, string(m)); ok {
			return m, hash
		}
	}
	return foreign, ""
}

// sum is the hash of what would be sent, in hexadecimal: half of a SHA-256.
type sum [sha256.Size]byte

func (s *sum) isIn(annotation string) bool {
	_, hash := splitMark(annotation)
	return hash == string(s[:])
}

var rooms = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}

func (k *kind) sum(obj client.Object) (sum, error) {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	encoded, err := k.plan.AppendJSON((*room)[:0], obj)
	if err != nil {
		return sum{}, err
	}
	*room = encoded
	return sumOf(encoded), nil
}

func sumOf(encoded []byte) (s sum) {
	digest := sha256.Sum256(encoded)
	hex.Encode(s[:], digest[:len(s)/2])
	return s
}
