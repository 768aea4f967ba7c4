// Package record has every annotation, label and finalizer of the domain opblocks.dev, and the formats of their values. docs/records.md has
// them in a table. The builders of package ownedresources set labels of Kubernetes' own domains. The functions of this package only
// compute: they neither read nor write objects of the API server.
//
// Whoever may write an object can write any value. So each parser returns the zero value for a value that this module does not write, and a
// value never proves anything about another object.
package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Keys on the children of a set of children.
const (
	Applied   = "opblocks.dev/applied"        // annotation, on every child: see [LastApplied]
	Set       = "opblocks.dev/set"            // annotation: the name of the set, if it has one
	OwnerName = "opblocks.dev/owner-name"     // annotation: KIND.GROUP/NAMESPACE/NAME of the owner for which the object was last written
	Order     = "opblocks.dev/order"          // annotation: the rank of a child that comes after others, see [OrderOf]
	OwnerUID  = "opblocks.dev/owner-uid"      // label of a mark: the UID of the owner, see [Mark]
	Owner     = "opblocks.dev/owner"          // annotation of a mark: KIND.GROUP/NAMESPACE/NAME/UID of the owner
	Object    = "opblocks.dev/object"         // annotation of a mark: KIND.GROUP/NAMESPACE/NAME of the object itself
	Retained  = "opblocks.dev/retained"       // annotation of a mark: "true" on a child that stays when its owner is deleted
	BuiltFrom = "opblocks.dev/built-from"     // annotation: a hash of what the builders saw of the owner and of what they read
	Builder   = "opblocks.dev/builder"        // annotation: which child of the set built a retained object, see [BuilderOf]
	Rotated   = "opblocks.dev/rotated"        // annotation of a Secret with generated keys: see [Triggers]
	Issued    = "opblocks.dev/issued"         // annotation of a Secret with credentials that an API shows once: a keyed hash of them
	Content   = "opblocks.dev/content"        // annotation of a Job that runs once: a hash of what has to run only once
	RunOwner  = "opblocks.dev/run-owner"      // annotation of a Job that runs once: the UID of the owner
	RunOnce   = "opblocks.dev/run-once"       // finalizer of a Job that runs once, until the owner has the record of its end
	Held      = "opblocks.dev/held"           // annotation of a suspended Job: "true" or "false", its spec.suspend after the start
	Scheduled = "opblocks.dev/scheduled-time" // annotation of a Job that runs by a schedule: the due time in RFC 3339
)

// Keys on owners. The key of a child's annotation is a prefix and the name that [Key] returns for the child. The finalizer of a set is the
// prefix and the name of the set.
const (
	RunPrefix       = "run-once.opblocks.dev/"       // annotation: see [Run]
	ExpansionPrefix = "expand-volumes.opblocks.dev/" // annotation, of the owner and of pods: see [Expansion]
	finalizerPrefix = "children.opblocks.dev/"       // finalizer of a set: see [Finalizer]
)

// Keys that people write on objects.
const (
	Paused    = "opblocks.dev/paused"       // annotation: see [Pause]
	Requested = "opblocks.dev/requested-at" // annotation: any text, such as the time; each new value requests a pass

	// ObserveInterval is an annotation. Its value is a duration: how often objects outside of the cluster are observed.
	ObserveInterval = "opblocks.dev/observe-interval"
)

// Method says how an object was last written. The value of [Applied] begins with it.
type Method string

// The values of Method.
const (
	ByCreate Method = "v1:created:" // by POST: before the next apply, the ownership of the fields is moved to our server-side apply
	ByApply  Method = "v1:applied:" // by server-side apply
	ByOthers Method = ""            // not by this module, or the format has another version
)

const (
	rewrittenPrefix = ":rewritten-"
	replicasSuffix  = ":replicas"
)

// LastApplied is the value of [Applied]: v1:created:HASH or v1:applied:HASH, where v1 is the version of the format. If the API server has
// stored something else than was sent, :rewritten-HASH follows. If spec.replicas was sent, :replicas follows.
type LastApplied struct {
	Method    Method
	Hash      string // the hash of what was sent
	Rewritten string // a hash of the differences between what was sent and what the API server stored; empty if there are none
	Replicas  bool   // spec.replicas was sent; if a later apply does not send it any more, the live value stays
}

// LastAppliedOf returns the value of [Applied] of an object.
func LastAppliedOf(obj metav1.Object) LastApplied {
	return ParseLastApplied(obj.GetAnnotations()[Applied])
}

// ParseLastApplied parses a value of [Applied].
func ParseLastApplied(value string) LastApplied {
	value, replicas := strings.CutSuffix(value, replicasSuffix)
	for _, method := range [...]Method{ByApply, ByCreate} {
		if hash, ok := strings.CutPrefix(value, string(method)); ok {
			hash, rewritten, _ := strings.Cut(hash, rewrittenPrefix)
			return LastApplied{Method: method, Hash: hash, Rewritten: rewritten, Replicas: replicas}
		}
	}
	return LastApplied{Method: ByOthers}
}

// String returns the value of [Applied].
func (l LastApplied) String() string {
	value := string(l.Method) + l.Hash
	if l.Rewritten != "" {
		value += rewrittenPrefix + l.Rewritten
	}
	if l.Replicas {
		value += replicasSuffix
	}
	return value
}

// OrderOf returns the rank of an object. Children with a higher rank are pruned first. The default is 0.
func OrderOf(obj metav1.Object) int {
	order, err := strconv.Atoi(obj.GetAnnotations()[Order])
	if err != nil {
		return 0
	}
	return max(0, order)
}

// Name is the kind, the namespace and the name of an object.
type Name struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// NameOf returns the name of an object of a kind.
func NameOf(kind schema.GroupKind, obj metav1.Object) Name {
	return Name{kind, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// String returns KIND.GROUP/NAMESPACE/NAME. A part that is not set is empty.
func (n Name) String() string {
	return n.Kind.String() + "/" + n.Namespace + "/" + n.NamespacedName.Name
}

// Mark names the owner of an object that has no owner reference. It is stored in the label [OwnerUID] and the annotations [Owner], [Object]
// and [Retained]. Anybody may have written it. So before anything is done to the object, compare UID with the UID of an owner.
type Mark struct {
	Owner    Name
	UID      types.UID
	Retained bool
}

// MarkOf returns the mark of an object of a kind. If the object has no mark, MarkOf returns false. It also returns false if the annotation
// [Object] names another object: this object is then a copy, and the mark is not its own.
func MarkOf(obj metav1.Object, kind schema.GroupKind) (Mark, bool) {
	annotations := obj.GetAnnotations()
	m, ok := ParseOwner(annotations[Owner])
	if !ok || annotations[Object] != NameOf(kind, obj).String() {
		return Mark{}, false
	}
	m.Retained = annotations[Retained] == "true"
	return m, true
}

// ParseOwner parses a value of [Owner].
func ParseOwner(value string) (Mark, bool) {
	parts := strings.SplitN(value, "/", 5)
	if len(parts) != 4 || parts[0] == "" || parts[2] == "" || parts[3] == "" {
		return Mark{}, false
	}
	return Mark{
		Owner: Name{schema.ParseGroupKind(parts[0]), types.NamespacedName{Namespace: parts[1], Name: parts[2]}},
		UID:   types.UID(parts[3]),
	}, true
}

// Annotations returns the annotations that store the mark on an object with this name.
func (m Mark) Annotations(object Name) map[string]string {
	annotations := map[string]string{Owner: m.Owner.String() + "/" + string(m.UID), Object: object.String()}
	if m.Retained {
		annotations[Retained] = "true"
	}
	return annotations
}

// BuilderOf returns the value of [Builder] for a child. functions are the names of the functions that build objects of its kind, and
// position is the position of the child among them.
func BuilderOf(functions []string, position int) string {
	return fmt.Sprintf("%s/%d", hashOf(strings.Join(functions, "\n"), 8), position)
}

// Triggers is the value of [Rotated]: KEY=HASH for each generated key of a Secret, separated by commas. HASH is the hash of the text that
// the function RotateOn returned when the key was last rotated.
type Triggers map[string]string

// ParseTriggers parses a value of [Rotated].
func ParseTriggers(value string) Triggers {
	triggers := Triggers{}
	for pair := range strings.SplitSeq(value, ",") {
		if key, hash, ok := strings.Cut(pair, "="); ok {
			triggers[key] = hash
		}
	}
	return triggers
}

// String returns the value of [Rotated], with sorted keys.
func (t Triggers) String() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(t)) {
		pairs = append(pairs, key+"="+t[key])
	}
	return strings.Join(pairs, ",")
}

// HashOfTrigger returns the hash of a text that the function RotateOn returned.
func HashOfTrigger(trigger string) string { return hashOf(trigger, 16) }

// RunState says how far a Job that runs once has come.
type RunState string

// The values of RunState.
const (
	RunStarted  RunState = "started"
	RunComplete RunState = "complete"
	RunFailed   RunState = "failed"
)

const runVersion = "v1"

// Run is the value of the owner's annotation about a Job that runs once: v1:started:CONTENT:UID, v1:complete:CONTENT or v1:failed:CONTENT.
// CONTENT is the value of [Content] of the Job, and UID is its UID. If the set has a name, the name follows after a colon. The zero value
// is for a Job that has never run.
type Run struct {
	State   RunState
	Content string
	UID     types.UID // the UID of the Job that was started
	Set     string
}

// ParseRun parses the value of an annotation with [RunPrefix].
func ParseRun(value string) Run {
	version, rest, _ := strings.Cut(value, ":")
	state, rest, ok := strings.Cut(rest, ":")
	if version != runVersion || !ok {
		return Run{}
	}
	content, rest, more := strings.Cut(rest, ":")
	switch state := RunState(state); {
	case state == RunStarted && more:
		uid, set, _ := strings.Cut(rest, ":")
		return Run{state, content, types.UID(uid), set}
	case state == RunComplete || state == RunFailed:
		return Run{State: state, Content: content, Set: rest}
	}
	return Run{}
}

// String returns the value of the annotation.
func (r Run) String() string {
	parts := []string{runVersion, string(r.State), r.Content}
	if r.State == RunStarted {
		parts = append(parts, string(r.UID))
	}
	if r.Set != "" {
		parts = append(parts, r.Set)
	}
	return strings.Join(parts, ":")
}

// Is reports whether the Job with this content is in this state.
func (r Run) Is(state RunState, content string) bool { return r.State == state && r.Content == content }

// Ended reports whether the Job with this content has completed or failed.
func (r Run) Ended(content string) bool {
	return r.Is(RunComplete, content) || r.Is(RunFailed, content)
}

// Names reports whether r records that this Job with this content was started.
func (r Run) Names(content string, job types.UID) bool {
	return r.Is(RunStarted, content) && r.UID == job
}

// Expansion is the value, in JSON, of an annotation about a StatefulSet that is being replaced by one with larger volumes.
type Expansion struct {
	Set       string `json:"set,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Replicas  *int32 `json:"replicas,omitempty"`
}

// ParseExpansion parses the value of an annotation with [ExpansionPrefix]. For any other value it returns nil.
func ParseExpansion(value string) *Expansion {
	e := &Expansion{}
	if value == "" || json.Unmarshal([]byte(value), e) != nil ||
		len(validation.IsDNS1123Subdomain(e.Name)) > 0 || len(validation.IsDNS1123Label(e.Namespace)) > 0 {
		return nil
	}
	return e
}

// maxName is the API's limit for the part of an annotation's key after the slash.
const maxName = 63

// Key returns the key of an owner's annotation about a child: the prefix and the name of the child. If the child is in another namespace
// than the owner, the namespace and an underscore precede the name. If the name would be too long, it is cut and ends in a hash.
func Key(prefix, ownerNamespace string, child metav1.Object) string {
	name := child.GetName()
	if namespace := child.GetNamespace(); namespace != ownerNamespace {
		name = namespace + "_" + name
	}
	if len(name) > maxName {
		name = name[:maxName-9] + "-" + hashOf(name, 8)
	}
	return prefix + name
}

// Finalizer returns the finalizer of a set: "children.opblocks.dev/" and the name of the set, or "set" if the set has no name.
func Finalizer(set string) string { return finalizerPrefix + cmp.Or(set, "set") }

// SetOf returns the name of the set that a finalizer belongs to. For any other finalizer it returns false.
func SetOf(finalizer string) (set string, ok bool) {
	return strings.CutPrefix(finalizer, finalizerPrefix)
}

// Pause is the meaning of [Paused]: "true" pauses, and so does a time in RFC 3339 until this time. "false" means the same as no annotation.
// Any other value pauses too, because whoever wrote it wanted the object to be left alone. Two pauses can be compared with ==.
type Pause struct {
	Paused bool
	Until  time.Time // in UTC; zero if the pause has no end
}

// PauseOf returns the pause that the annotation of an object asks for, whether or not it has already ended.
func PauseOf(obj metav1.Object) Pause {
	value, ok := obj.GetAnnotations()[Paused]
	if !ok || value == "false" {
		return Pause{}
	}
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return Pause{Paused: true}
	}
	return Pause{Paused: true, Until: until.UTC()}
}

// At returns the pause as it is at this time: if it has ended, the result is not paused.
func (p Pause) At(now time.Time) Pause {
	if !p.Until.IsZero() && !now.Before(p.Until) {
		return Pause{}
	}
	return p
}

// hashOf returns the SHA-256 of a text in hexadecimal, cut to this number of digits.
func hashOf(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}
