package feature

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// maxGeneratedLength is the largest length of a value that [ownedresources.Child.Generate] makes.
const maxGeneratedLength = 1024

// generateMistake returns an error if the generated keys in the options of a child are not valid.
func generateMistake(o *owned.Options, kind schema.GroupKind) error {
	if len(o.Generate) == 0 {
		return nil
	}
	if kind != (schema.GroupKind{Kind: "Secret"}) {
		return errors.New("it has Generate, which is for a Secret: take it away, or put the value into a Secret of its own")
	}
	if o.Recreate {
		return errors.New("it has Generate and Recreate: a recreated Secret would lose its values; take Recreate away")
	}
	seen := map[string]bool{}
	for _, k := range o.Generate {
		if problems := validation.IsConfigMapKey(k.Name); len(problems) > 0 {
			return fmt.Errorf("Generate(%q): it is not a key of a Secret: %s", k.Name, strings.Join(problems, "; "))
		}
		switch {
		case k.Length < 1 || k.Length > maxGeneratedLength:
			return fmt.Errorf("Generate(%q) with length %d: use a length between 1 and %d", k.Name, k.Length, maxGeneratedLength)
		case seen[k.Name]:
			return fmt.Errorf("Generate(%q) is given twice: a key has one value", k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}

// WithoutGenerated returns a copy of a desired Secret without the keys to generate, and these keys. If the Secret has its own value for a
// key, nothing is generated for it. An annotation of the copy has the hashes of what RotateOn returns for the keys. So a new result of
// RotateOn changes the desired Secret.
func WithoutGenerated(o *owned.Owner, obj client.Object, keys []owned.GeneratedKey) (client.Object, []owned.GeneratedKey) {
	if len(keys) == 0 {
		return obj, nil
	}
	obj = obj.DeepCopyObject().(client.Object)
	var generated []owned.GeneratedKey
	triggers := record.Triggers{}
	for _, k := range keys {
		if len(SecretValue(obj, k.Name)) > 0 {
			continue
		}
		SetSecretValue(obj, k.Name, nil)
		if k.RotateOn != nil {
			k.Trigger = record.HashOfTrigger(k.RotateOn(o.Seen))
			triggers[k.Name] = k.Trigger
		}
		generated = append(generated, k)
	}
	if len(triggers) > 0 {
		owned.SetAnnotation(obj, record.Rotated, triggers.String())
	}
	dropEmptyData(obj)
	return obj, generated
}

// dropEmptyData removes an empty data map from an unstructured Secret. Encoding a typed Secret leaves out an empty map, too.
func dropEmptyData(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if data, isMap := u.Object["data"].(map[string]any); isMap && len(data) == 0 {
			delete(u.Object, "data")
		}
	}
}

// noTrigger is the hash of an empty string. If RotateOn returns an empty string, the value is kept.
var noTrigger = record.HashOfTrigger("")

// FillPlan says, for the generated keys of a Secret, which values are kept and which are made.
type FillPlan struct {
	keep      map[string][]byte    // the values that stay
	Fill      []owned.GeneratedKey // the keys that get a new random value
	Triggered bool                 // for at least one key, RotateOn returned another string than the annotation of the live Secret records
}

// PlanFill decides which values of a live Secret are kept. live is nil if the Secret does not exist.
func PlanFill(keys []owned.GeneratedKey, live client.Object) FillPlan {
	plan := FillPlan{keep: map[string][]byte{}}
	var triggers record.Triggers
	if live != nil {
		triggers = record.ParseTriggers(live.GetAnnotations()[record.Rotated])
	}
	for _, k := range keys {
		var value []byte
		if live != nil {
			value = SecretValue(live, k.Name)
		}
		recorded, known := triggers[k.Name]
		changed := k.RotateOn != nil && known && recorded != k.Trigger
		plan.Triggered = plan.Triggered || changed
		if len(value) == 0 || changed && k.Trigger != noTrigger {
			plan.Fill = append(plan.Fill, k)
		} else {
			plan.keep[k.Name] = value
		}
	}
	return plan
}

// LacksGenerated returns the paths of the generated keys for which a live Secret has no value.
func LacksGenerated(d *owned.Desired, live client.Object) (paths []string) {
	for _, k := range d.Generate {
		if len(SecretValue(live, k.Name)) == 0 {
			paths = append(paths, "data["+k.Name+"]")
		}
	}
	return paths
}

// SetGenerated puts the values to send into d: the values to keep, and new random ones.
func SetGenerated(ctx context.Context, d *owned.Desired, plan FillPlan) {
	d.Generated = plan.keep
	for _, k := range plan.Fill {
		d.Generated[k.Name] = randomText(ctx, k.Length)
	}
}

// CheckGenerated returns a conflict if the live object is not in the version for which the values of the generated keys were decided.
func CheckGenerated(d *owned.Desired, live client.Object) error {
	if len(d.Generate) == 0 || live.GetResourceVersion() == d.GeneratedFrom {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, d.Object.GetName(),
		errors.New("it has changed since its generated keys were read: read it again"))
}

// generatedAlphabet contains no character that has a meaning in URLs or shells.
const generatedAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// randomText returns random characters of the alphabet, each with the same probability.
func randomText(ctx context.Context, length int) []byte {
	const fair = 256 - 256%len(generatedAlphabet) // larger bytes are not used: with them, the first characters would be more frequent
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

// SecretValue returns the value of a key of a Secret, typed or unstructured.
func SecretValue(obj client.Object, key string) []byte {
	switch obj := obj.(type) {
	case *corev1.Secret:
		return obj.Data[key]
	case *unstructured.Unstructured:
		data, _ := obj.Object["data"].(map[string]any)
		encoded, _ := data[key].(string)
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil { // the API server stores only valid base64
			return nil
		}
		return value
	}
	return nil
}

// SetSecretValue sets the value of a key of a Secret. A nil value removes the key.
func SetSecretValue(obj client.Object, key string, value []byte) {
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
