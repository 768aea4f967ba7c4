package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// known returns the identities of objects that are written like "name uid version generateName".
func known(objects ...client.Object) *Identities {
	var ids Identities
	for _, obj := range objects {
		ids.Add(obj)
	}
	return &ids
}

func settings(name, uid, version, generateName string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(uid), ResourceVersion: version, GenerateName: generateName,
	}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

// UIDs, resource versions and generated names of the run's objects make no difference in any field.
func TestIdentities(t *testing.T) {
	const uid, gone = "11111111-0000", "22222222-0000"
	tests := map[string]struct {
		reason string
		known  *Identities
		field  string // the name of an annotation of the object
		value  string
		want   string
	}{
		"UID": {
			reason: "the UID of an object that exists",
			known:  known(settings("a", uid, "5", "")), field: "ref", value: "of " + uid, want: "of <uid of ConfigMap a>",
		},
		"UIDOfAnObjectThatIsGone": {
			reason: "the name of the object is shown in its place",
			known:  known(settings("a", uid, "5", ""), settings("old", gone, "4", "")), field: "ref", value: gone, want: "<uid of ConfigMap old>",
		},
		"UnknownUID": {
			reason: "a UID that no object of the run had is a value as any other",
			known:  known(settings("a", uid, "5", "")), field: "ref", value: "33333333-0000", want: "33333333-0000",
		},
		"GeneratedName": {
			reason: "the name of an object that is gone, if the API server generated it",
			known:  known(settings("web-x7k2p", gone, "4", "web-")), field: "ref", value: "was web-x7k2p", want: "was web-<gone>",
		},
		"ChosenName": {
			reason: "a name that the operator chose counts",
			known:  known(settings("web-x7k2p", gone, "4", "")), field: "ref", value: "was web-x7k2p", want: "was web-x7k2p",
		},
		"NameThatOnlyBeginsAlike": {
			reason: "the operator may send generateName together with a name",
			known:  known(settings("other", gone, "4", "web-")), field: "ref", value: "other", want: "other",
		},
		"ResourceVersion": {
			reason: "a field of that name has a version, whatever its value",
			known:  known(), field: "resourceVersion", value: "7", want: "<version>",
		},
		"ResourceVersionOfSomething": {
			reason: "other names that end so are known too",
			known:  known(), field: "configResourceVersion", value: "7", want: "<version>",
		},
		"VersionOfAnObject": {
			reason: "in other fields with version in their name, a value counts as one if an object had it",
			known:  known(settings("a", uid, "2003", "")), field: "observedVersion", value: "2003", want: "<version of ConfigMap a>",
		},
		"SmallVersion": {
			reason: "small numbers are often versions of something else",
			known:  known(settings("a", uid, "17", "")), field: "databaseVersion", value: "17", want: "17",
		},
		"VersionThatNoObjectHad": {
			reason: "a large number is not enough",
			known:  known(settings("a", uid, "2003", "")), field: "appVersion", value: "2004", want: "2004",
		},
		"VersionInAnotherField": {
			reason: "a port may equal a version by chance",
			known:  known(settings("a", uid, "8080", "")), field: "port", value: "8080", want: "8080",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := settings("a", uid, "5", "")
			obj.Annotations = map[string]string{tc.field: tc.value}
			s, err := Of([]client.Object{obj}, tc.known, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			metadata := s["ConfigMap default/a"].(map[string]any)["metadata"].(map[string]any)
			if diff := cmp.Diff(map[string]any{tc.field: tc.want}, metadata["annotations"]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An owner reference to a deleted object differs from an owner reference to an object of the same name that exists.
func TestIdentitiesOfOwners(t *testing.T) {
	const uid, earlier = "11111111-0000", "22222222-0000"
	owned := func(by string) State {
		owner, child := settings("a", uid, "5", ""), settings("child", "33333333-0000", "6", "")
		child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: types.UID(by)}}
		s, err := Of([]client.Object{owner, child}, known(settings("a", earlier, "3", ""), owner, child), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := []string{`ConfigMap default/child: metadata.ownerReferences[a].uid: "<uid of ConfigMap a>" without faults, "<uid of an earlier object>" here`}
	if diff := cmp.Diff(want, Difference(owned(uid), owned(earlier))); diff != "" {
		t.Error(diff)
	}
}

// Each version of an object has its own resource version and the same UID.
func TestIdentitiesAdd(t *testing.T) {
	ids := known(settings("a", "11111111-0000", "2001", ""), settings("a", "11111111-0000", "2002", ""))
	if len(ids.uids) != 1 {
		t.Errorf("%d UIDs, want 1", len(ids.uids))
	}
	content := map[string]any{"list": []any{map[string]any{"seenVersion": "2001"}, map[string]any{"seenVersion": "2002"}}}
	ids.replaceVersions(content)
	version := map[string]any{"seenVersion": "<version of ConfigMap a>"}
	if diff := cmp.Diff(map[string]any{"list": []any{version, version}}, content); diff != "" {
		t.Error(diff)
	}
}
