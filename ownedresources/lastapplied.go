package ownedresources

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// AnnotationApplied is set on every object that this package writes. Its value is the
	// format's version, how the object was last written, and the hash of what was sent:
	// v1:created:… or v1:applied:…, followed by :replicas if those were sent.
	AnnotationApplied = "opblocks.dev/applied"
	// AnnotationSet names the [ChildSet] that an object belongs to, so that sets of the same
	// kind and owner leave each other's objects alone.
	AnnotationSet = "opblocks.dev/set"
)

// lastApplied says how an object was last written.
type lastApplied string

const (
	created lastApplied = "v1:created:" // by POST: its fields have to be migrated before an apply
	applied lastApplied = "v1:applied:" // by server-side apply
	foreign lastApplied = ""            // not by us, or by a version that we do not know
)

// withReplicas follows the hash where replicas were sent: if they are not any more, they are
// to stay as they are.
const withReplicas = ":replicas"

func (m lastApplied) value(s sum, replicas bool) string {
	if replicas {
		return string(m) + string(s[:]) + withReplicas
	}
	return string(m) + string(s[:])
}

// withoutOurs drops our annotations from what is wanted: they come with a copy of somebody's
// annotations, such as an owner's that has an owner itself.
func withoutOurs(obj client.Object) client.Object {
	annotations := obj.GetAnnotations()
	_, isApplied := annotations[AnnotationApplied]
	_, isSet := annotations[AnnotationSet]
	if !isApplied && !isSet {
		return obj
	}
	obj = obj.DeepCopyObject().(client.Object)
	annotations = obj.GetAnnotations()
	delete(annotations, AnnotationApplied)
	delete(annotations, AnnotationSet)
	obj.SetAnnotations(annotations)
	return obj
}

func splitMark(annotation string) (m lastApplied, hash string, replicas bool) {
	annotation, replicas = strings.CutSuffix(annotation, withReplicas)
	for _, m := range []lastApplied{applied, created} {
		if hash, ok := strings.CutPrefix(annotation, string(m)); ok {
			return m, hash, replicas
		}
	}
	return foreign, "", false
}

// sum is the hash of what would be sent, in hexadecimal: half of a SHA-256.
type sum [sha256.Size]byte

func (s *sum) isIn(annotation string) bool {
	_, hash, _ := splitMark(annotation)
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
