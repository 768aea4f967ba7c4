package ownedresources

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
)

const (
	// AnnotationApplied is set on every object that this package writes. Its value is v1:created:HASH or
	// v1:applied:HASH, where v1 is the version of the format and HASH that of what was sent. If the API server has stored
	// something else, :rewritten-HASH follows, with a hash of the differences. The suffix :replicas follows if
	// spec.replicas was sent.
	AnnotationApplied = "opblocks.dev/applied"
	// AnnotationSet is set on the children of a [ChildSet] that has a name. Its value is that name. Sets of one owner
	// with children of the same kind use it to leave each other's children alone.
	AnnotationSet = "opblocks.dev/set"
	// AnnotationOrder is set on children that come after others ([Child.After]). Its value is a number: children with a
	// higher one are pruned first.
	AnnotationOrder = "opblocks.dev/order"
)

// writeMethod is how an object was last written, as [AnnotationApplied] begins.
type writeMethod string

const (
	byCreate writeMethod = "v1:created:" // POST: the fields have to be migrated before they can be applied
	byApply  writeMethod = "v1:applied:" // server-side apply
	byOthers writeMethod = ""            // not by this package, or in a version of the format that is not known
)

// rewrittenPrefix is between the hash of what was sent and that of what the API server made of it.
const rewrittenPrefix = ":rewritten-"

// replicasSuffix follows the hash where spec.replicas was sent. If they are not sent any more, they keep their value.
const replicasSuffix = ":replicas"

// lastApplied is the parsed value of [AnnotationApplied].
type lastApplied struct {
	method    writeMethod
	hash      string
	rewritten string // fingerprint of the differences that the API server made, empty if there were none
	replicas  bool   // spec.replicas was sent
}

func lastAppliedOf(live client.Object) lastApplied {
	return parseLastApplied(live.GetAnnotations()[AnnotationApplied])
}

func parseLastApplied(annotation string) lastApplied {
	annotation, replicas := strings.CutSuffix(annotation, replicasSuffix)
	for _, method := range [...]writeMethod{byApply, byCreate} {
		if hash, ok := strings.CutPrefix(annotation, string(method)); ok {
			hash, rewritten, _ := strings.Cut(hash, rewrittenPrefix)
			return lastApplied{method: method, hash: hash, rewritten: rewritten, replicas: replicas}
		}
	}
	return lastApplied{method: byOthers}
}

// String is the annotation's value.
func (l lastApplied) String() string {
	value := string(l.method) + l.hash
	if l.rewritten != "" {
		value += rewrittenPrefix + l.rewritten
	}
	if l.replicas {
		value += replicasSuffix
	}
	return value
}

// fingerprint is a short hash of differences, empty if there are none.
func fingerprint(differences []compare.Difference) string {
	if len(differences) == 0 {
		return ""
	}
	var text []byte
	for _, d := range differences {
		for _, part := range [...]string{d.Path, d.Want, d.Have} {
			text = append(append(text, part...), 0)
		}
	}
	s := sumOf(text)
	return string(s[:12])
}

// withoutOwnAnnotations drops this package's annotations from a desired object. They get there in a copy of another
// object's annotations: an owner that is itself a child carries them.
func withoutOwnAnnotations(obj client.Object) client.Object {
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
	delete(annotations, AnnotationOrder)
	delete(annotations, AnnotationRotated)
	delete(annotations, AnnotationContent)
	delete(annotations, annotationRunOwner)
	obj.SetAnnotations(annotations)
	return obj
}

// sum is the hash of what would be sent: the first half of a SHA-256, in hexadecimal.
type sum [sha256.Size]byte

func sumOf(encoded []byte) (s sum) {
	digest := sha256.Sum256(encoded)
	hex.Encode(s[:], digest[:len(s)/2])
	return s
}

// buffers are for encoded objects.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}
