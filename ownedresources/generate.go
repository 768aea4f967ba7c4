package ownedresources

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// AnnotationRotated is set on a Secret with generated keys that have [RotateOn]. Its value is a list of KEY=HASH, separated
// by commas. HASH is that of the mark for which the key was last rotated.
const AnnotationRotated = "opblocks.dev/rotated"

// maxGeneratedLength is the longest value that [Generate] makes.
const maxGeneratedLength = 1024

// GenerateOption is an option of [Generate]: [RotateOn].
type GenerateOption func(*generatedKey)

// generatedKey is a key of a Secret that is filled with random values.
type generatedKey struct {
	name     string
	length   int
	rotateOn func(owner client.Object) string // nil if the key is never rotated
	typ      reflect.Type                     // the type of owner that rotateOn takes
	mark     string                           // the hash of what rotateOn returned, see [desired.generated]
}

// Generate fills a key of a Secret with a random value of this length, between 1 and 1,024 characters, if the key is missing
// or empty. It never changes a value that is there, whoever put it in. A value consists of letters and digits, so it needs no
// quotes in a URL or a shell; each character is worth 5.95 bits. Use the option once for each key.
//
// The function that builds the Secret leaves the key out, or leaves its value empty. If it sets a value, that value is applied
// as any other, and nothing is generated. If it stops doing so, the value stays.
//
// A key that is deleted or emptied gets a new value, and so does a Secret that is deleted: whoever used the old value has to
// take the new one. A Secret cannot have [Recreate] too, because a recreated Secret would lose its values.
//
// The value is in no annotation, event, condition or log.
//
//	ownedresources.Build(credentials, ownedresources.Generate("password", 32))
func Generate(key string, length int, options ...GenerateOption) ChildOption {
	generated := generatedKey{name: key, length: length}
	for _, option := range options {
		option(&generated)
	}
	return func(o *childOptions) { o.generate = append(o.generate, generated) }
}

// RotateOn replaces the generated value once whenever the mark changes that the function returns for the owner, such as the
// value of an annotation that a person sets. A mark that becomes empty replaces nothing. T is the type of the owner.
//
// A value that was there before the option was added is kept until the mark changes for the first time.
//
//	ownedresources.Generate("password", 32, ownedresources.RotateOn(func(app *App) string {
//		return app.Annotations["example.com/rotate-password"]
//	}))
func RotateOn[T client.Object](mark func(owner T) string) GenerateOption {
	return func(k *generatedKey) {
		k.rotateOn = func(owner client.Object) string { return mark(owner.(T)) }
		k.typ = reflect.TypeFor[T]()
	}
}

// generateMistake returns what is wrong with the generated keys of a child.
func (o *childOptions) generateMistake(kind schema.GroupKind, ownerType reflect.Type) error {
	if len(o.generate) == 0 {
		return nil
	}
	if kind != (schema.GroupKind{Kind: "Secret"}) {
		return errors.New("Generate is for a Secret: take it away, or put the value into a Secret of its own")
	}
	if o.recreate {
		return errors.New("it has Generate and Recreate: a recreated Secret would lose its values; take Recreate away")
	}
	seen := map[string]bool{}
	for _, k := range o.generate {
		if problems := validation.IsConfigMapKey(k.name); len(problems) > 0 {
			return fmt.Errorf("Generate(%q): it is not a key of a Secret: %s", k.name, strings.Join(problems, "; "))
		}
		switch {
		case k.length < 1 || k.length > maxGeneratedLength:
			return fmt.Errorf("Generate(%q) with length %d: use a length between 1 and %d", k.name, k.length, maxGeneratedLength)
		case seen[k.name]:
			return fmt.Errorf("Generate(%q) is given twice: a key has one value", k.name)
		case k.typ != nil && !ownerType.AssignableTo(k.typ):
			return fmt.Errorf("Generate(%q): its RotateOn is for %s: give that a function of %s", k.name, k.typ, ownerType)
		}
		seen[k.name] = true
	}
	return nil
}

// withoutGenerated returns a desired Secret without the keys that are generated, and with the marks for which they were last
// rotated, so that a change of a mark is a change of what is desired. It also returns these keys: those that the Secret has no
// value of its own for.
func withoutGenerated(o *owner, obj client.Object, keys []generatedKey) (client.Object, []generatedKey) {
	if len(keys) == 0 {
		return obj, nil
	}
	obj = obj.DeepCopyObject().(client.Object)
	var generated []generatedKey
	marks := map[string]string{}
	for _, k := range keys {
		if len(secretValue(obj, k.name)) > 0 {
			continue
		}
		setSecretValue(obj, k.name, nil)
		if k.rotateOn != nil {
			k.mark = hashOfMark(k.rotateOn(o.object))
			marks[k.name] = k.mark
		}
		generated = append(generated, k)
	}
	if len(marks) > 0 {
		setAnnotation(obj, AnnotationRotated, formatMarks(marks))
	}
	dropEmptyData(obj)
	return obj, generated
}

// dropEmptyData removes the data of an unstructured Secret that has none, as encoding does for a typed one.
func dropEmptyData(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if data, isMap := u.Object["data"].(map[string]any); isMap && len(data) == 0 {
			delete(u.Object, "data")
		}
	}
}

// noMark is the hash of an empty mark.
var noMark = hashOfMark("")

func hashOfMark(mark string) string {
	digest := sha256.Sum256([]byte(mark))
	return hex.EncodeToString(digest[:8])
}

func formatMarks(marks map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(marks)) {
		pairs = append(pairs, key+"="+marks[key])
	}
	return strings.Join(pairs, ",")
}

func parseMarks(annotation string) map[string]string {
	marks := map[string]string{}
	for pair := range strings.SplitSeq(annotation, ",") {
		if key, mark, ok := strings.Cut(pair, "="); ok {
			marks[key] = mark
		}
	}
	return marks
}

// fillPlan is what has to be done to the generated keys of a live Secret.
type fillPlan struct {
	keep   map[string][]byte // values that stay
	fill   []generatedKey    // keys that get a new value
	marked bool              // a recorded mark differs from the desired one
}

// planFill decides which values of a live Secret are kept. live is nil if there is none.
func planFill(keys []generatedKey, live client.Object) fillPlan {
	plan := fillPlan{keep: map[string][]byte{}}
	var marks map[string]string
	if live != nil {
		marks = parseMarks(live.GetAnnotations()[AnnotationRotated])
	}
	for _, k := range keys {
		var value []byte
		if live != nil {
			value = secretValue(live, k.name)
		}
		recorded, known := marks[k.name]
		changed := k.rotateOn != nil && known && recorded != k.mark
		plan.marked = plan.marked || changed
		if len(value) == 0 || changed && k.mark != noMark {
			plan.fill = append(plan.fill, k)
		} else {
			plan.keep[k.name] = value
		}
	}
	return plan
}

// lacksGenerated returns the paths of the generated keys that a live Secret has no value for.
func (d *desired) lacksGenerated(live client.Object) (paths []string) {
	for _, k := range d.generate {
		if len(secretValue(live, k.name)) == 0 {
			paths = append(paths, "data["+k.name+"]")
		}
	}
	return paths
}

// fillGenerated decides which values of the generated keys are sent with the next apply, and returns the live object that
// they were taken from. Its version is the precondition of that apply, so no value is replaced that appeared meanwhile.
//
// New values are only made after a read past the cache: a cache may leave out the data of Secrets. A mark is only compared
// for an owner that is known to be current. A process that has just started may see an older mark, and would rotate back.
func (a *applier) fillGenerated(ctx context.Context, d *desired, live client.Object) (client.Object, error) {
	if len(d.generate) == 0 {
		return live, nil
	}
	plan := planFill(d.generate, live)
	if len(plan.fill) > 0 || plan.marked {
		var err error
		if plan.marked {
			err = a.confirm(ctx, d.owner)
		}
		if err != nil {
			return nil, err
		}
		if live, err = a.readLive(ctx, d); err != nil {
			return nil, fmt.Errorf("read %s: %w", d, err)
		}
		if err := d.owner.mayWrite(d, live); err != nil {
			return nil, err
		}
		plan = planFill(d.generate, live)
	}
	d.setGenerated(ctx, plan)
	d.generatedFrom = live.GetResourceVersion()
	return live, nil
}

// setGenerated sets the values that are sent, and makes those that are new.
func (d *desired) setGenerated(ctx context.Context, plan fillPlan) {
	d.generated = plan.keep
	for _, k := range plan.fill {
		d.generated[k.name] = randomText(ctx, k.length)
	}
}

// checkGenerated returns a conflict if the live object is not the version that the generated values were decided for.
func (d *desired) checkGenerated(live client.Object) error {
	if len(d.generate) == 0 || live.GetResourceVersion() == d.generatedFrom {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, d.object.GetName(),
		errors.New("it has changed since its generated keys were read: read it again"))
}

// generatedAlphabet has no character that has a meaning in a URL or a shell.
const generatedAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// randomText returns random characters of the alphabet, each with the same probability.
func randomText(ctx context.Context, length int) []byte {
	const fair = 256 - 256%len(generatedAlphabet) // higher bytes would make the first characters more frequent
	text := make([]byte, 0, length)
	random := make([]byte, 2*length)
	for {
		passcontext.ReadRandom(ctx, random)
		for _, b := range random {
			if int(b) >= fair {
				continue
			}
			if text = append(text, generatedAlphabet[int(b)%len(generatedAlphabet)]); len(text) == length {
				return text
			}
		}
	}
}

// secretValue returns the value of a key of a Secret, typed or unstructured.
func secretValue(obj client.Object, key string) []byte {
	switch obj := obj.(type) {
	case *corev1.Secret:
		return obj.Data[key]
	case *unstructured.Unstructured:
		data, _ := obj.Object["data"].(map[string]any)
		encoded, _ := data[key].(string)
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil { // the API server never stores such a value
			return nil
		}
		return value
	}
	return nil
}

// setSecretValue sets the value of a key of a Secret. A nil value removes the key.
func setSecretValue(obj client.Object, key string, value []byte) {
	switch obj := obj.(type) {
	case *corev1.Secret:
		if value == nil {
			delete(obj.Data, key)
			return
		}
		if obj.Data == nil {
			obj.Data = map[string][]byte{}
		}
		obj.Data[key] = value
	case *unstructured.Unstructured:
		data, _ := obj.Object["data"].(map[string]any)
		if value == nil {
			delete(data, key)
			return
		}
		if data == nil {
			data = map[string]any{}
			obj.Object["data"] = data
		}
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
}

// setAnnotation sets an annotation in memory.
func setAnnotation(obj client.Object, key, value string) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
