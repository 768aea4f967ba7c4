package overlay_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

func TestProtect(t *testing.T) {
	const refusal = ": Forbidden: cannot be changed, because the operator needs it: remove from the patch what changes, replaces or deletes it"
	cases := map[string]struct {
		reason  string
		protect string
		patch   string
		allowed bool
	}{
		"Field":            {reason: "A change of the field itself.", protect: "spec.serviceAccountName", patch: `{spec: {serviceAccountName: admin}}`},
		"FieldRemoved":     {reason: "Null.", protect: "spec.serviceAccountName", patch: `{spec: {serviceAccountName: null}}`},
		"FieldAdded":       {reason: "A field that the base leaves unset stays unset.", protect: "spec.hostNetwork", patch: `{spec: {hostNetwork: true}}`},
		"PointerAdded":     {reason: "Behind a nil pointer too.", protect: "spec.affinity.nodeAffinity", patch: `{spec: {affinity: {nodeAffinity: {}}}}`},
		"SameValue":        {reason: "Nothing changes.", protect: "spec.serviceAccountName", patch: `{spec: {serviceAccountName: web}}`, allowed: true},
		"SameQuantity":     {reason: "Quantities are compared by value.", protect: "spec.containers[web].resources", patch: `{spec: {containers: [{name: web, resources: {requests: {cpu: "0.1"}}}]}}`, allowed: true},
		"OtherField":       {reason: "Another field is free.", protect: "spec.serviceAccountName", patch: `{spec: {priorityClassName: high}}`, allowed: true},
		"Around":           {reason: "What is around the field is replaced.", protect: "spec.securityContext.runAsNonRoot", patch: `{spec: {securityContext: {$patch: replace, runAsUser: 0}}}`},
		"AroundRetained":   {reason: "By another directive.", protect: "spec.securityContext.runAsNonRoot", patch: `{spec: {securityContext: {$retainKeys: [runAsUser]}}}`},
		"ContainerImage":   {reason: "A field of an item.", protect: "spec.containers[web].image", patch: `{spec: {containers: [{name: web, image: other}]}}`},
		"OtherContainer":   {reason: "The same field of another item.", protect: "spec.containers[web].image", patch: `{spec: {containers: [{name: metrics, image: other}]}}`, allowed: true},
		"Whole":            {reason: "The whole item.", protect: "spec.containers[web]", patch: `{spec: {containers: [{name: web, env: [{name: A, value: a}]}]}}`},
		"WholeAndAnother":  {reason: "An item beside it.", protect: "spec.containers[web]", patch: `{spec: {containers: [{name: new, image: a}]}}`, allowed: true},
		"NameDeleted":      {reason: "The item must stay.", protect: "spec.containers[web].name", patch: `{spec: {containers: [{name: web, $patch: delete}]}}`},
		"NameReplaced":     {reason: "The list is replaced.", protect: "spec.containers[web].name", patch: `{spec: {containers: [{$patch: replace}, {name: new, image: a}]}}`},
		"NameKept":         {reason: "Other fields of the item are free.", protect: "spec.containers[web].name", patch: `{spec: {containers: [{name: web, image: other}]}}`, allowed: true},
		"Nested":           {reason: "An item of an item.", protect: "spec.containers[web].env[MODE]", patch: `{spec: {containers: [{name: web, env: [{name: MODE, value: b}]}]}}`},
		"NestedOther":      {reason: "Another item of the item.", protect: "spec.containers[web].env[MODE]", patch: `{spec: {containers: [{name: web, env: [{name: LEVEL, value: b}]}]}}`, allowed: true},
		"Port":             {reason: "A key that is a number.", protect: "spec.containers[web].ports[8080]", patch: `{spec: {containers: [{name: web, ports: [{containerPort: 8080, name: other}]}]}}`},
		"Mount":            {reason: "A key with slashes.", protect: "spec.containers[web].volumeMounts[/data]", patch: `{spec: {containers: [{name: web, volumeMounts: [{mountPath: /data, $patch: delete}]}]}}`},
		"AddedItem":        {reason: "An item that must not exist.", protect: "spec.initContainers[evil]", patch: `{spec: {initContainers: [{name: evil}]}}`},
		"MapEntry":         {reason: "An entry of a map.", protect: "metadata.annotations[note]", patch: `{metadata: {annotations: {note: user}}}`},
		"MapEntryAdded":    {reason: "With dots and slashes in its name.", protect: "metadata.annotations[example.com/config-hash]", patch: `{metadata: {annotations: {example.com/config-hash: "0"}}}`},
		"MapOther":         {reason: "Another entry.", protect: "metadata.annotations[note]", patch: `{metadata: {annotations: {other: user}}}`, allowed: true},
		"Limits":           {reason: "A map whose keys have a type of their own.", protect: "spec.containers[web].resources.requests[cpu]", patch: `{spec: {containers: [{name: web, resources: {requests: {cpu: 2}}}]}}`},
		"AtomicList":       {reason: "A list as a whole.", protect: "spec.tolerations", patch: `{spec: {tolerations: []}}`},
		"Inlined":          {reason: "A field of an inlined struct.", protect: "spec.volumes[data].emptyDir", patch: `{spec: {volumes: [{name: data, emptyDir: {sizeLimit: 2Gi}}]}}`},
		"ListOfContainers": {reason: "No container may change, come or go.", protect: "spec.containers", patch: `{spec: {containers: [{name: new, image: a}]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := patchOf(t, tc.patch).Apply(template(t, base), selector, overlay.Protect("spec.hostPID", tc.protect))
			if tc.allowed {
				require.NoError(t, err, tc.reason)
				return
			}
			require.EqualError(t, err, "spec.podTemplate."+tc.protect+refusal, tc.reason)
			require.True(t, apierrors.IsInvalid(err))
		})
	}
}

func TestProtectAsterisk(t *testing.T) {
	cases := map[string]struct {
		reason  string
		protect string
		patch   string
		allowed bool
	}{
		"Items":       {reason: "Whichever item it is.", protect: "spec.containers[*].image", patch: `{spec: {containers: [{name: metrics, image: other}]}}`},
		"Added":       {reason: "An item that is added has the field.", protect: "spec.volumes[*].hostPath", patch: `{spec: {volumes: [{name: host, hostPath: {path: /}}]}}`},
		"AddedOther":  {reason: "An item that is added has another field.", protect: "spec.volumes[*].hostPath", patch: `{spec: {volumes: [{name: new, emptyDir: {}}]}}`, allowed: true},
		"AddedPort":   {reason: "An item that is added leaves the field unset.", protect: "spec.containers[*].ports[*].hostPort", patch: `{spec: {containers: [{name: web, ports: [{containerPort: 1}]}, {name: new, ports: [{containerPort: 2}]}]}}`, allowed: true},
		"HostPort":    {reason: "And here it sets it.", protect: "spec.containers[*].ports[*].hostPort", patch: `{spec: {containers: [{name: web, ports: [{containerPort: 8080, hostPort: 1}]}]}}`},
		"EmptyObject": {reason: "An empty object is a value.", protect: "spec.volumes[*].hostPath", patch: `{spec: {volumes: [{name: host, hostPath: {}}]}}`},
		"EmptyEntry":  {reason: "An empty entry is one.", protect: "metadata.annotations[*]", patch: `{metadata: {annotations: {empty: ""}}}`},
		"EmptyList":   {reason: "An empty list is none.", protect: "spec.schedulingGates", patch: `{spec: {schedulingGates: []}}`, allowed: true},
		"Deep":        {reason: "A field of the field.", protect: "spec.containers[*].securityContext.privileged", patch: `{spec: {containers: [{name: web, securityContext: {privileged: true}}]}}`},
		"Moved":       {reason: "Two items exchange their values.", protect: "spec.containers[*].image", patch: `{spec: {containers: [{name: web, image: "exporter:1"}, {name: metrics, image: "nginx:1.27"}]}}`},
		"Reordered":   {reason: "The order is not the field.", protect: "spec.containers[*].image", patch: `{spec: {$setElementOrder/containers: [{name: metrics}, {name: web}]}}`, allowed: true},
		"Deleted":     {reason: "The field goes with its item.", protect: "spec.containers[*].image", patch: `{spec: {containers: [{name: metrics, $patch: delete}]}}`},
		"Twice":       {reason: "Two asterisks.", protect: "spec.containers[*].env[*].value", patch: `{spec: {containers: [{name: web, env: [{name: MODE, value: b}]}]}}`},
		"Beginning":   {reason: "The names begin with the text.", protect: "metadata.annotations[no*]", patch: `{metadata: {annotations: {nothing: a}}}`},
		"Elsewhere":   {reason: "Other names are free.", protect: "metadata.annotations[no*]", patch: `{metadata: {annotations: {on: a}}}`, allowed: true},
		"Alias":       {reason: "What sets the same is protected too.", protect: "spec.initContainers[*]", patch: `{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/setup: unconfined}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := patchOf(t, tc.patch).Apply(template(t, base), selector, overlay.Protect(tc.protect))
			if tc.allowed {
				require.NoError(t, err, tc.reason)
				return
			}
			require.True(t, apierrors.IsInvalid(err), tc.reason)
		})
	}
}

func TestProtectSeveralTimes(t *testing.T) {
	patch := patchOf(t, `{spec: {hostNetwork: true, hostPID: true}}`)
	_, err := patch.Apply(template(t, base), selector, overlay.Protect("spec.hostPID"), overlay.Protect("spec.hostNetwork"), overlay.At(field.NewPath("spec", "web")))
	require.ErrorContains(t, err, "spec.web.spec.hostPID: Forbidden")
	require.ErrorContains(t, err, "spec.web.spec.hostNetwork: Forbidden")
}

// A path with a typo would protect nothing, so it is an error.
func TestProtectWrongPath(t *testing.T) {
	for path, want := range map[string]string{
		"":                                `there is no field ""`,
		"spec.":                           `there is no field ""`,
		"spec.image":                      `there is no field "image"`,
		"Spec":                            `there is no field "Spec"`,
		"metadata.labels.app":             `"metadata.labels" has no fields; write an entry of a map or an item of a list as [app]`,
		"spec.hostNetwork.x":              `"spec.hostNetwork" has no fields; write an entry of a map or an item of a list as [x]`,
		"spec.containers.image":           `"spec.containers" has no fields; write an entry of a map or an item of a list as [image]`,
		"spec.containers[web":             "a bracket is not closed",
		"spec.containers[web]image":       `a dot is missing before "image"`,
		"spec.tolerations[0]":             `"tolerations" has no keys; protect it as a whole`,
		"spec[containers]":                `"spec" has no keys; protect it as a whole`,
		"spec.containers[web][name]":      `a dot is missing before "[name]"`,
		"spec.containers[web].ports[1].x": `there is no field "x"`,
	} {
		for _, patch := range []*overlay.PodTemplate{nil, rawPatch(`{"spec": {}}`)} {
			_, err := patch.Apply(corev1.PodTemplateSpec{}, nil, overlay.Protect("spec", path))
			require.EqualError(t, err, `the path "`+path+`" of overlay.Protect does not exist in a pod template: `+want)
			require.False(t, apierrors.IsInvalid(err), "the user cannot correct it")
		}
	}
}
