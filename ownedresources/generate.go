package ownedresources

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// maxGeneratedLength is the longest value that [Child.Generate] makes.
const maxGeneratedLength = 1024

// generatedKey is a key of a Secret that is filled with random values.
type generatedKey struct {
	name     string
	length   int
	rotateOn func(owner client.Object) string // nil if the key is never rotated
	trigger  string                           // the hash of what rotateOn returned
}

// Generate fills a key of a Secret with a random value of this length, between 1 and 1,024 characters, if the key is missing
// or empty, and returns the child. It never changes a value that is there, whoever put it in. A value consists of letters and
// digits, so it needs no quotes in a URL or a shell; each character is worth 5.95 bits. Call it once for each key.
//
// The function that builds the Secret leaves the key out, or leaves its value empty. If it sets a value, that value is applied
// as any other, and nothing is generated. If it stops doing so, the value stays.
//
// A key that is deleted or emptied gets a new value, and so does a Secret that is deleted: whoever used the old value has to
// take the new one. A Secret cannot have [Recreate] too, because a recreated Secret would lose its values.
//
// The value is in no annotation, event, condition or log.
//
//	ownedresources.Build(credentials).Generate("password", 32)
//
// The function rotateOn, at most one, returns a trigger, such as the value of an annotation that a person sets. Whenever the
// trigger changes, the value is replaced once. A trigger that becomes empty replaces nothing. A value that was
// there before the function was added is kept until the trigger changes for the first time.
//
//	ownedresources.Build(credentials).Generate("password", 32, func(app *App) string {
//		return app.Annotations["example.com/rotate-password"]
//	})
func (c *Child[T, C]) Generate(key string, length int, rotateOn ...func(owner T) string) *Child[T, C] {
	return c.change("Generate", func(c *child) {
		generated := generatedKey{name: key, length: length}
		if len(rotateOn) > 0 {
			generated.rotateOn = func(owner client.Object) string { return rotateOn[0](owner.(T)) }
		}
		if len(rotateOn) > 1 {
			c.mistake = fmt.Errorf("Generate(%q) has %d functions that return a trigger: give it one", key, len(rotateOn))
		}
		c.options.generate = append(c.options.generate, generated)
	})
}

// generateMistake returns what is wrong with the generated keys of a child.
func (o *childOptions) generateMistake(kind schema.GroupKind) error {
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
		}
		seen[k.name] = true
	}
	return nil
}

// withoutGenerated returns a desired Secret without the keys that are generated, and with the hashes of their triggers
// in an annotation, so that a change of a trigger is a change of what is desired. It also returns these keys, for which
// the Secret has no value of its own.
func withoutGenerated(o *owner, obj client.Object, keys []generatedKey) (client.Object, []generatedKey) {
	if len(keys) == 0 {
		return obj, nil
	}
	obj = obj.DeepCopyObject().(client.Object)
	var generated []generatedKey
	triggers := record.Triggers{}
	for _, k := range keys {
		if len(secretValue(obj, k.name)) > 0 {
			continue
		}
		setSecretValue(obj, k.name, nil)
		if k.rotateOn != nil {
			k.trigger = record.HashOfTrigger(k.rotateOn(o.object))
			triggers[k.name] = k.trigger
		}
		generated = append(generated, k)
	}
	if len(triggers) > 0 {
		setAnnotation(obj, record.Rotated, triggers.String())
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

// noTrigger is the hash of an empty trigger.
var noTrigger = record.HashOfTrigger("")

// fillPlan is what has to be done to the generated keys of a live Secret.
type fillPlan struct {
	keep      map[string][]byte // values that stay
	fill      []generatedKey    // keys that get a new value
	triggered bool              // a trigger has changed: its hash is not the hash in the record
}

// planFill decides which values of a live Secret are kept. live is nil if there is none.
func planFill(keys []generatedKey, live client.Object) fillPlan {
	plan := fillPlan{keep: map[string][]byte{}}
	var triggers record.Triggers
	if live != nil {
		triggers = record.ParseTriggers(live.GetAnnotations()[record.Rotated])
	}
	for _, k := range keys {
		var value []byte
		if live != nil {
			value = secretValue(live, k.name)
		}
		recorded, known := triggers[k.name]
		changed := k.rotateOn != nil && known && recorded != k.trigger
		plan.triggered = plan.triggered || changed
		if len(value) == 0 || changed && k.trigger != noTrigger {
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

// fillGenerated decides which values of the generated keys are sent with the next apply, and returns the live object
// that they were taken from. Its version is the precondition of that apply, so a value that somebody sets in between is
// not replaced.
//
// New values are only made after a read past the cache: a cache may leave out the data of Secrets. A trigger is only
// compared for an owner that is known to be current. A process that has just started may see an older trigger, and
// would rotate back.
func (a *applier) fillGenerated(ctx context.Context, d *desired, live client.Object) (client.Object, error) {
	if len(d.generate) == 0 {
		return live, nil
	}
	plan := planFill(d.generate, live)
	if len(plan.fill) > 0 || plan.triggered {
		var err error
		if plan.triggered {
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

// setGenerated sets the values that are sent, and makes the new ones.
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
