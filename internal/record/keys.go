package record

// Form says where a key is in the metadata of an object.
type Form string

// The values of Form.
const (
	AsAnnotation Form = "annotation"
	AsLabel      Form = "label"
	AsFinalizer  Form = "finalizer"
)

// Setter says which code sets a key on a child.
type Setter string

// The values of Setter.
const (
	SetByWrite  Setter = "write"  // each write of a child, after the child was compared with the desired one
	SetByMark   Setter = "mark"   // each write of a child that has a [Mark] in place of an owner reference
	SetByOption Setter = "option" // an option of a child, on the desired object; so it is compared like what the user's function sets
	SetByMaker  Setter = "make"   // the code that creates or starts the object; the key is never a copy from another child
)

// ChildKey describes an annotation, a label or a finalizer that this library sets on children.
type ChildKey struct {
	Key  string
	Form Form
	By   Setter

	// Provenance means that the value only says how, for whom, or from which versions the object was written. Plans and events do not show a
	// difference in it.
	Provenance bool

	// Versions means that the value depends on resource versions, so it differs from one run of a test to the next.
	Versions bool
}

// onChildren has every key that this library sets on children. The table decides which keys are removed if a builder copies them from
// another child, which keys are removed together with a [Mark], and which keys do not count as a difference.
var onChildren = []ChildKey{
	{Key: Applied, Form: AsAnnotation, By: SetByWrite, Provenance: true},
	{Key: Set, Form: AsAnnotation, By: SetByWrite},
	{Key: OwnerName, Form: AsAnnotation, By: SetByWrite, Provenance: true},
	{Key: Order, Form: AsAnnotation, By: SetByWrite},
	{Key: BuiltFrom, Form: AsAnnotation, By: SetByWrite, Provenance: true, Versions: true},
	{Key: OwnerUID, Form: AsLabel, By: SetByMark},
	{Key: Owner, Form: AsAnnotation, By: SetByMark},
	{Key: Object, Form: AsAnnotation, By: SetByMark},
	{Key: Retained, Form: AsAnnotation, By: SetByMark},
	{Key: Builder, Form: AsAnnotation, By: SetByMark},
	{Key: Rotated, Form: AsAnnotation, By: SetByOption},
	{Key: Content, Form: AsAnnotation, By: SetByOption},
	{Key: RunOwner, Form: AsAnnotation, By: SetByOption},
	{Key: RunOnce, Form: AsFinalizer, By: SetByMaker},
	{Key: Held, Form: AsAnnotation, By: SetByMaker},
	{Key: Issued, Form: AsAnnotation, By: SetByMaker},
	{Key: Scheduled, Form: AsAnnotation, By: SetByMaker},
}

// OnChildren returns the keys of the annotations, labels or finalizers on children for which the function returns true.
func OnChildren(form Form, is func(ChildKey) bool) (keys []string) {
	for _, k := range onChildren {
		if k.Form == form && is(k) {
			keys = append(keys, k.Key)
		}
	}
	return keys
}
