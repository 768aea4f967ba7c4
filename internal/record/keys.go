package record

// Form is where a key stands in the metadata of an object.
type Form string

// The forms.
const (
	AsAnnotation Form = "annotation"
	AsLabel      Form = "label"
	AsFinalizer  Form = "finalizer"
)

// Setter is what sets a key on a child.
type Setter string

// The setters.
const (
	SetByWrite  Setter = "write"  // a write of the engine, after the object was compared
	SetByMark   Setter = "mark"   // the same, if the object is bound by a [Mark]
	SetByOption Setter = "option" // an option of a child, on the desired object: it is compared like what the builder sets
	SetByMaker  Setter = "make"   // the code that creates or starts the object: the key is not copied from another child
)

// ChildKey is one kind of record on a child.
type ChildKey struct {
	Key  string
	Form Form
	By   Setter

	// Provenance means that the value says how, for whom, or from which versions the object was written. Plans and events do not show
	// such a key as a difference.
	Provenance bool

	// Versions means that the value has resource versions, which differ from run to run of a test.
	Versions bool
}

// onChildren has every key of a child. It decides which keys are dropped from a copy of another child's metadata, which keys are taken
// off with a mark, and which keys do not count as a difference.
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

// OnChildren returns the keys of children of one form for which the function returns true.
func OnChildren(form Form, is func(ChildKey) bool) (keys []string) {
	for _, k := range onChildren {
		if k.Form == form && is(k) {
			keys = append(keys, k.Key)
		}
	}
	return keys
}
