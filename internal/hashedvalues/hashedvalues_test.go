package hashedvalues

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const bound = 1000

var long = strings.Repeat("x", 2*bound)

func settings(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "1"}, Data: data}
}

func password(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "password", UID: "2"}, Data: data}
}

func untypedOf(kind string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion("v1")
	u.SetKind(kind)
	u.SetName("untyped")
	return u
}

// hashed returns a copy of an object, with hashes in place of its long values, as the cache holds it.
func hashed(t *testing.T, obj client.Object) client.Object {
	t.Helper()
	made, err := Transform(bound, nil)(obj.DeepCopyObject())
	require.NoError(t, err)
	return made.(client.Object)
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestMarkCannotBeForged(t *testing.T) {
	require.NotEmpty(t, validation.IsQualifiedName(mark))
}

func TestWithoutMark(t *testing.T) {
	require.Nil(t, WithoutMark(nil))
	require.Nil(t, WithoutMark(onlyMark))
	require.Contains(t, onlyMark, mark, "it is shared")
	require.Equal(t, map[string]string{"note": "stays"}, WithoutMark(map[string]string{"note": "stays"}))
	require.Equal(t, map[string]string{"note": "stays"}, WithoutMark(map[string]string{"note": "stays", mark: ""}))
}

func TestTransform(t *testing.T) {
	applied := settings(map[string]string{"a": "1"})
	applied.Annotations = map[string]string{lastApplied: long, "note": "stays"}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": long}}}
	manyKeys := map[string]string{}
	for i := range bound {
		manyKeys[fmt.Sprint(i)] = ""
	}
	shortValues := map[string]string{}
	for i := range 20 {
		shortValues[fmt.Sprint(i)] = long[:hashLength-1]
	}
	tests := map[string]struct {
		reason string
		obj    client.Object
		want   func(hashed client.Object) any
		is     any
	}{
		"Small": {
			reason: "All of it is not more than the bound.",
			obj:    settings(map[string]string{"k": strings.Repeat("x", bound-1)}),
			want:   func(o client.Object) any { return IsHashed(o) }, is: false,
		},
		"Text": {
			reason: "A short value is not longer than its hash.",
			obj:    settings(map[string]string{"long": long, "short": "1"}),
			want:   func(o client.Object) any { return o.(*corev1.ConfigMap).Data },
			is:     map[string]string{"long": hashOf([]byte(long)), "short": "1"},
		},
		"Binary": {
			reason: "BinaryData counts as Data does.",
			obj:    &corev1.ConfigMap{BinaryData: map[string][]byte{"long": []byte(long)}},
			want:   func(o client.Object) any { return string(o.(*corev1.ConfigMap).BinaryData["long"]) }, is: hashOf([]byte(long)),
		},
		"Secret": {
			reason: "A Secret is no different.",
			obj:    password(map[string][]byte{"long": []byte(long)}),
			want:   func(o client.Object) any { return string(o.(*corev1.Secret).Data["long"]) }, is: hashOf([]byte(long)),
		},
		"Sum": {
			reason: "Many values that are not long fill the memory too.",
			obj:    settings(map[string]string{"a": long[:bound/2], "b": long[:bound/2], "c": "1"}),
			want:   func(o client.Object) any { return len(o.(*corev1.ConfigMap).Data["a"]) }, is: hashLength,
		},
		"LengthOfAHash": {
			reason: "Nobody can give the hash of a value for the value.",
			obj:    settings(map[string]string{"long": long, "forged": hashOf([]byte(long))}),
			want:   func(o client.Object) any { return o.(*corev1.ConfigMap).Data["forged"] }, is: hashOf([]byte(hashOf([]byte(long)))),
		},
		"Keys": {
			reason: "Keys alone can fill the memory.",
			obj:    settings(manyKeys),
			want:   func(o client.Object) any { return [2]any{o.(*corev1.ConfigMap).Data == nil, o.GetAnnotations()[mark]} }, is: [2]any{true, withoutKeys},
		},
		"ShortValues": {
			reason: "Many values that are shorter than a hash can do so too.",
			obj:    settings(shortValues),
			want:   func(o client.Object) any { return [2]any{o.(*corev1.ConfigMap).Data == nil, o.GetAnnotations()[mark]} }, is: [2]any{true, withoutKeys},
		},
		"LastApplied": {
			reason: "kubectl keeps the values once more in an annotation.",
			obj:    applied,
			want:   func(o client.Object) any { return o.GetAnnotations() }, is: map[string]string{"note": "stays", mark: ""},
		},
		"UntypedConfigMap": {
			reason: "An unstructured object is hashed as well.",
			obj:    untypedOf("ConfigMap", map[string]any{"data": map[string]any{"long": long}, "binaryData": map[string]any{"more": encoded(long)}}),
			want: func(o client.Object) any {
				fields := o.(*unstructured.Unstructured).Object
				return []any{fields["data"], fields["binaryData"]}
			},
			is: []any{map[string]any{"long": hashOf([]byte(long))}, map[string]any{"more": encoded(hashOf([]byte(encoded(long))))}},
		},
		"UntypedSecret": {
			reason: "Its values stay base64.",
			obj:    untypedOf("Secret", map[string]any{"data": map[string]any{"long": encoded(long)}}),
			want:   func(o client.Object) any { return o.(*unstructured.Unstructured).Object["data"] },
			is:     map[string]any{"long": encoded(hashOf([]byte(encoded(long))))},
		},
		"OtherKind": {
			reason: "Only Secrets and ConfigMaps are hashed.",
			obj:    service,
			want:   func(o client.Object) any { return o }, is: service,
		},
		"OtherUntypedKind": {
			reason: "A kind of another group may have this name.",
			obj: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Secret", "metadata": map[string]any{}, "data": map[string]any{"long": encoded(long)},
			}},
			want: func(o client.Object) any { return IsHashed(o) }, is: false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			made := hashed(t, test.obj)
			require.Equal(t, test.is, test.want(made), test.reason)
			require.Equal(t, made, hashed(t, made), "a cache may call the transform again")
		})
	}
}

func TestTransformCallsNext(t *testing.T) {
	var seen client.Object
	next := func(obj any) (any, error) {
		seen = obj.(client.Object)
		return obj, nil
	}
	for _, options := range []cache.Options{
		{DefaultTransform: next},
		{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Transform: next}}},
		{DefaultNamespaces: map[string]cache.Config{"shop": {Transform: next}}},
		{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{"shop": {Transform: next}}}}},
	} {
		seen = nil
		of := Options(options, bound)
		transform := of.DefaultNamespaces["shop"].Transform
		for _, by := range of.ByObject {
			if transform = by.Transform; transform == nil {
				transform = by.Namespaces["shop"].Transform
			}
		}
		if transform == nil {
			transform = of.DefaultTransform
		}
		_, err := transform(settings(map[string]string{"long": long}))
		require.NoError(t, err)
		require.True(t, IsHashed(seen), "next sees the small object")
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/settings"}
	same, err := Transform(bound, nil)(tombstone)
	require.NoError(t, err)
	require.Equal(t, tombstone, same)
}

func TestRestore(t *testing.T) {
	whole := settings(map[string]string{"long": long, "short": "1"})
	whole.Annotations = map[string]string{"note": "stays"}
	secret := password(map[string][]byte{"long": []byte(long), "short": []byte("1")})
	untyped := untypedOf("Secret", map[string]any{"data": map[string]any{"long": encoded(long)}})
	with := func(key, value string) *corev1.ConfigMap {
		other := whole.DeepCopy()
		other.Data[key] = value
		return other
	}
	manyKeys := map[string]string{}
	for i := range bound {
		manyKeys[fmt.Sprint(i)] = ""
	}
	applied := whole.DeepCopy()
	applied.Annotations[lastApplied] = long
	tests := map[string]struct {
		reason        string
		live, desired client.Object
		want          client.Object // nil if the object has to be read from the API server
	}{
		"AsDesired":       {"All values are known.", whole, whole, whole},
		"Secret":          {"A Secret is no different.", secret, secret, secret},
		"Untyped":         {"Nor is an unstructured object.", untyped, untyped, untyped},
		"NotHashed":       {"A small object is whole.", settings(map[string]string{"a": "1"}), whole, settings(map[string]string{"a": "1"})},
		"DesiresLess":     {"A short value of another writer is in the cache.", whole, settings(map[string]string{"long": long}), whole},
		"DesiresMore":     {"What is missing is seen without the other values.", whole, with("new", "1"), whole},
		"OtherShortValue": {"A short value that has to be changed is in the cache.", whole, with("short", "2"), whole},
		"OtherValue":      {"The live value is not known.", whole, with("long", long+"y"), nil},
		"OfAnotherWriter": {"A long value that nobody desires is not known.", with("theirs", long), whole, nil},
		"ShortDesired":    {"A short value has no hash.", whole, with("long", hashOf([]byte(long))), nil},
		"ForgedHash": {
			"It is hashed as any other value.", settings(map[string]string{"pad": long, "long": hashOf([]byte("desired"))}),
			settings(map[string]string{"pad": long, "long": "desired"}), nil,
		},
		"Keys":           {"Nothing is known.", settings(manyKeys), settings(manyKeys), nil},
		"AnotherType":    {"The desired object cannot be compared.", whole, &corev1.Service{}, nil},
		"LastApplied":    {"Nobody desires what kubectl writes, and nothing reads it.", applied, whole, whole},
		"DesiresApplied": {"If somebody does desire it, it has to be read.", applied, applied, nil},
		"Configuration": {
			"An apply configuration is an unstructured object.", whole,
			untypedOf("ConfigMap", map[string]any{"data": map[string]any{"long": long}}), whole,
		},
		"StrangeConfiguration": {
			"It does not fit the type.", whole, untypedOf("ConfigMap", map[string]any{"data": map[string]any{"long": int64(1)}}), nil,
		},
		"StrangeValue": {
			"A value without a text has no hash.", untypedOf("ConfigMap", map[string]any{"data": map[string]any{"long": long}}),
			untypedOf("ConfigMap", map[string]any{"data": map[string]any{"long": int64(1)}}), nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live := hashed(t, test.live)
			before, desired := live.DeepCopyObject(), test.desired.DeepCopyObject()
			got, ok := Restore(live, test.desired)
			require.Equal(t, test.want != nil, ok, test.reason)
			if ok {
				require.Equal(t, test.want, got, test.reason)
			}
			require.Equal(t, before, live, "the live object is the cache's")
			require.Equal(t, desired, test.desired)
		})
	}
}

// cachedObjects is the reader of a cache with hashed objects. The objects that it returns share their memory with the cache.
type cachedObjects struct {
	client.Reader
	configMap *corev1.ConfigMap
}

func (c cachedObjects) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	*obj.(*corev1.ConfigMap) = *c.configMap
	return nil
}

func (c cachedObjects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if configMaps, ok := list.(*corev1.ConfigMapList); ok {
		configMaps.Items = []corev1.ConfigMap{*settings(map[string]string{"small": "1"}), *c.configMap}
	}
	return nil
}

func TestReader(t *testing.T) {
	whole := settings(map[string]string{"long": long})
	whole.Labels = map[string]string{"app": "shop"}
	recreated, relabelled := whole.DeepCopy(), whole.DeepCopy()
	recreated.UID, relabelled.Labels = "3", nil
	selecting := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"app": "shop"})}
	tests := map[string]struct {
		reason string
		live   *corev1.ConfigMap
		found  bool
		listed int
	}{
		"Whole":      {"It is read from the API server.", whole, true, 2},
		"Gone":       {"The cache does not show the deletion yet.", nil, false, 1},
		"Recreated":  {"It is another object, of which the cache knows nothing.", recreated, false, 1},
		"Relabelled": {"A list returns only what was asked for.", relabelled, true, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder()
			if test.live != nil {
				live.WithObjects(test.live)
			}
			inCache := hashed(t, whole).(*corev1.ConfigMap)
			r := Reader{cachedObjects{configMap: inCache}, live.Build()}
			got := &corev1.ConfigMap{}
			err := r.Get(t.Context(), client.ObjectKeyFromObject(whole), got)
			require.Equal(t, test.found, err == nil, test.reason)
			require.Equal(t, !test.found, apierrors.IsNotFound(err), test.reason)
			if test.found {
				require.Equal(t, long, got.Data["long"])
			}
			var list corev1.ConfigMapList
			require.NoError(t, r.List(t.Context(), &list, selecting))
			require.Len(t, list.Items, test.listed, test.reason)
			for _, item := range list.Items[1:] {
				require.Equal(t, long, item.Data["long"])
			}
			require.True(t, IsHashed(inCache), "nobody writes to the cache's memory")

			require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(whole), got, AsHashed))
			require.True(t, IsHashed(got))
			require.NoError(t, r.List(t.Context(), &list, AsHashed))
			require.True(t, IsHashed(&list.Items[1]))
			require.NoError(t, r.List(t.Context(), &corev1.ServiceList{}), "it has nothing to do with other kinds")
		})
	}
}

type failing struct{ client.Reader }

var errServer = apierrors.NewServiceUnavailable("overloaded")

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errServer
}

// If the whole object cannot be read, Reader returns an error, and no part of the object.
func TestReaderFails(t *testing.T) {
	whole := settings(map[string]string{"long": long})
	r := Reader{cachedObjects{configMap: hashed(t, whole).(*corev1.ConfigMap)}, failing{}}
	require.ErrorIs(t, r.Get(t.Context(), client.ObjectKeyFromObject(whole), &corev1.ConfigMap{}), errServer)
	require.ErrorIs(t, r.List(t.Context(), &corev1.ConfigMapList{}), errServer)
}
