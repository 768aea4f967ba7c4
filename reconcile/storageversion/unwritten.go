package storageversion

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostNamed is how many objects with the same verdict a message names, at most.
const mostNamed = 5

// unwritten has the objects that a walk could not write, and why.
type unwritten struct {
	keys    []client.ObjectKey
	reasons map[verdict][]string // at most mostNamed for each verdict, and one more text for all others
}

func (u *unwritten) add(key client.ObjectKey, v verdict, err error) {
	if u.reasons == nil {
		u.reasons = map[verdict][]string{}
	}
	u.keys = append(u.keys, key)
	switch named := len(u.reasons[v]); {
	case named < mostNamed:
		u.reasons[v] = append(u.reasons[v], fmt.Sprintf("%s: %v", key, err))
	case named == mostNamed:
		u.reasons[v] = append(u.reasons[v], "and more")
	}
}

// message names the objects, in the order of their names, and says what to do. It contains no number of objects, so that it is the same
// after each walk.
func (u *unwritten) message(version string) string {
	var parts []string
	for _, part := range []struct {
		verdict
		text string
	}{
		{refused, "the API server refuses to write objects in version %s: change or delete them, or change the schema or the webhook that refuses them: %s"},
		{failing, "the API server fails to write objects in version %s, and they are tried again; if a webhook converts them, see that it runs: %s"},
	} {
		if reasons := u.reasons[part.verdict]; len(reasons) > 0 {
			parts = append(parts, fmt.Sprintf(part.text, version, strings.Join(reasons, "; ")))
		}
	}
	return strings.Join(parts, ". ")
}

// leftover has the objects that a complete walk could not write. Until the CustomResourceDefinition changes, later walks only try these
// objects again: newer objects are stored in the storage version.
type leftover struct {
	seen    seen
	rewrite bool
	keys    []client.ObjectKey
	done    int // how many objects are stored as they should be
}

// isOf reports whether a walk over the objects of this CustomResourceDefinition has left objects unwritten.
func (l *leftover) isOf(crd *apiextensionsv1.CustomResourceDefinition, rewrite bool) bool {
	return len(l.keys) > 0 && l.seen == seenOf(crd) && l.rewrite == rewrite
}
