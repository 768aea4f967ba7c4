package overlay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

const (
	noEffect   = "has no effect here, because the list around it is replaced as a whole: write the list as it is to be"
	notMerged  = "orders only lists that are merged: "
	notPlain   = "removes only from lists of plain values: "
	twiceInKey = "stands twice in the list, and the API server would merge the two items: merge them, or give the whole list, after an item \"$patch: replace\""
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  string
		want   []string // the expected errors, without the path of the patch
	}{
		"Nothing":     {reason: "An absent patch is valid.", patch: ""},
		"Null":        {reason: "Null is an absent patch.", patch: "null"},
		"EmptyObject": {reason: "An empty patch is valid.", patch: "{}"},
		"NotJSON": {
			reason: "A patch that was written by Go code may be anything.",
			patch:  `{"spec":`, want: []string{": Invalid value: must be JSON: unexpected end of JSON input"},
		},
		"TwoObjects": {
			reason: "Nothing may follow the object.",
			patch:  `{} {}`, want: []string{": Invalid value: must be JSON: invalid character '{' after top-level value"},
		},
		"NotObject": {
			reason: "The schema of the field refuses this too.",
			patch:  `["spec"]`, want: []string{": Invalid value: must be a JSON object with the fields metadata and spec"},
		},
		"DuplicateKeys": {
			reason: "Of two values for one key readers take different ones.",
			patch:  `{"spec": {"hostNetwork": true, "hostNetwork": false}}`,
			want:   []string{`: Invalid value: duplicate field "spec.hostNetwork": keep one of the two`},
		},
		"TooLarge": {
			reason: "The time of a merge grows with the square of the items.",
			patch:  `{"metadata": {"annotations": {"a": "` + strings.Repeat("x", 1<<20) + `"}}}`,
			want:   []string{": Too long: may not be more than 65536 bytes"},
		},
		"LargestSize": {
			reason: "The limit itself is allowed.",
			patch:  `{"metadata": {"annotations": {"a": "` + strings.Repeat("x", overlay.MaxSize-40) + `"}}}`,
		},
		"DeepNesting": {
			reason: "What is nested in an unknown field is not looked at.",
			patch:  `{"spec": {"a": ` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}}`,
			want:   []string{".spec.a: Invalid value: unknown field"},
		},
		"DeeperNesting": {
			reason: "The JSON parser has a limit of its own.",
			patch:  `{"spec": {"a": ` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}}`,
			want:   []string{": Invalid value: must be JSON: invalid character '[' exceeded max depth"},
		},
		"UnknownFields": {
			reason: "A field that is misspelt would have no effect.",
			patch:  `{"spec": {"priorityClass": "", "Volumes": [], "containers": [{"name": "a", "env": [{"name": "b", "valeu": ""}]}]}, "containers": [], "labels": {}, "kind": "Pod"}`,
			want: []string{
				".containers: Invalid value: unknown field: it belongs below spec",
				".kind: Invalid value: unknown field",
				".labels: Invalid value: unknown field: it belongs below metadata",
				".spec.Volumes: Invalid value: unknown field: write volumes",
				".spec.containers[0].env[0].valeu: Invalid value: unknown field",
				".spec.priorityClass: Invalid value: unknown field",
			},
		},
		"WrongTypes": {
			reason: "The path of each wrong value is named.",
			patch: `{"metadata": [], "spec": {"hostNetwork": "true", "priority": 2147483648, "terminationGracePeriodSeconds": 1.5, "nodeSelector": {"a": 1, "b": null},
				"securityContext": "x", "volumes": {}, "containers": [{"name": "a", "args": ["x", 1]}, "web"]}}`,
			want: []string{
				".metadata: Invalid value: must be an object",
				".spec.containers[0].args[1]: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
				".spec.containers[1]: Invalid value: must be an object",
				".spec.hostNetwork: Invalid value: must be true or false",
				".spec.nodeSelector[a]: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
				".spec.priority: Invalid value: must be an integer of at most 32 bits",
				".spec.securityContext: Invalid value: must be an object",
				".spec.terminationGracePeriodSeconds: Invalid value: must be an integer of at most 64 bits",
				".spec.volumes: Invalid value: must be a list",
			},
		},
		"WrongQuantities": {
			reason: "Values with a form of their own are parsed.",
			patch: `{"metadata": {"creationTimestamp": "now"}, "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "much", "memory": {}}},
				"livenessProbe": {"tcpSocket": {"port": 1.5}}}]}}`,
			want: []string{
				".metadata.creationTimestamp: Invalid value: is malformed",
				".spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: must be an integer or a string",
				".spec.containers[0].resources.limits[cpu]: Invalid value: must be a quantity, such as 500m or 1Gi",
				".spec.containers[0].resources.limits[memory]: Invalid value: must be a quantity, such as 500m or 1Gi",
			},
		},
		"LongQuantities": {
			reason: "Parsing the first would take minutes.",
			patch:  `{"spec": {"overhead": {"a": "1e-100000000", "b": "1E+999", "c": "` + strings.Repeat("1", 51) + `", "d": "1e-12", "e": "1Ei", "f": "2E", "g": "1e1e1e1"}}}`,
			want: []string{
				".spec.overhead[a]: Invalid value: must be a shorter quantity, such as 500m or 1Gi",
				".spec.overhead[b]: Invalid value: must be a shorter quantity, such as 500m or 1Gi",
				".spec.overhead[c]: Invalid value: must be a shorter quantity, such as 500m or 1Gi",
				".spec.overhead[g]: Invalid value: must be a shorter quantity, such as 500m or 1Gi",
			},
		},
		"NullItems": {
			reason: "Null deletes a field, and an item by its directive only. The API server's library panics on null items.",
			patch:  `{"spec": {"containers": [null], "tolerations": [null], "initContainers": null}}`,
			want: []string{
				".spec.containers[0]: Invalid value: must not be null: leave the item out",
				".spec.tolerations[0]: Invalid value: must not be null: leave the item out",
			},
		},
		"NoKey": {
			reason: "An item without its key cannot be merged.",
			patch:  `{"spec": {"containers": [{"image": "a"}, {"name": null}, {"$patch": "delete"}, {"name": {}}]}}`,
			want: []string{
				".spec.containers[0].name: Required value: the items of this list are merged by it",
				".spec.containers[1].name: Required value: the items of this list are merged by it",
				".spec.containers[2].name: Required value: the items of this list are merged by it",
				".spec.containers[3].name: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
			},
		},
		"SameKeyTwice": {
			reason: "The API server would merge the two, and lose one. A port has TCP by default, and one of another protocol is another port.",
			patch:  `{"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]}]}}`,
			want:   []string{".spec.containers[0].ports[1].containerPort: Invalid value: " + twiceInKey},
		},
		"PerhapsTwice": {
			reason: "Without its second field, an item may be each that has the first.",
			patch:  `{"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}, {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 3}]}}`,
			want:   []string{".spec.topologySpreadConstraints[1].topologyKey: Invalid value: " + twiceInKey},
		},
		"RootDirective": {
			reason: "A pod template without its base is none of the operator's.",
			patch:  `{"$patch": "replace", "spec": {"a": 1}}`,
			want:   []string{".$patch: Forbidden: the pod template cannot be replaced or deleted as a whole: write what is to be changed"},
		},
		"WrongDirectives": {
			reason: "A directive that is misspelt would become a field or an item.",
			patch:  `{"spec": {"$patch": "merge", "$replace": true, "nodeSelector": {"$patch": null, "$a/b": 1}, "containers": [{"$patch": "replace", "name": "a"}]}}`,
			want: []string{
				".spec.$patch: Invalid value: must be replace or delete",
				".spec.$replace: Forbidden: is not a directive of a strategic merge patch",
				`.spec.containers[0].$patch: Forbidden: replaces the whole list and discards what stands beside it: let "$patch: replace" be an item of its own`,
				".spec.nodeSelector[$a/b]: Forbidden: is not a directive of a strategic merge patch",
				".spec.nodeSelector[$patch]: Invalid value: must be replace or delete",
			},
		},
		"DirectivesInAtomicLists": {
			reason: "The API server would keep them as items or fields.",
			patch:  `{"spec": {"tolerations": [{"$patch": "replace"}, {"key": "a", "$retainKeys": ["key"]}], "containers": [{"name": "a", "envFrom": [{"configMapRef": {"$patch": "delete"}}]}]}}`,
			want: []string{
				".spec.containers[0].envFrom[0].configMapRef.$patch: Forbidden: " + noEffect,
				".spec.tolerations[0].$patch: Forbidden: " + noEffect,
				".spec.tolerations[1].$retainKeys: Forbidden: " + noEffect,
			},
		},
		"RetainKeys": {
			reason: "The names must be fields, and those that are set must be among them.",
			patch: `{"spec": {"$retainKeys": "containers", "volumes": [
				{"name": "a", "$retainKeys": ["nfs"], "nfs": {}, "emptyDir": null}, {"name": "b", "$retainKeys": ["name", "x"]}, {"name": "c", "$retainKeys": [{}]}]}}`,
			want: []string{
				".spec.$retainKeys: Invalid value: must be a list of names of fields",
				".spec.volumes[0].$retainKeys: Required value: must name all fields that the patch sets beside it, also name",
				".spec.volumes[1].$retainKeys[1]: Invalid value: must be the name of a field beside it",
				".spec.volumes[2].$retainKeys[0]: Invalid value: must be the name of a field beside it",
			},
		},
		"SetElementOrder": {
			reason: "The API server's library panics on the order of an atomic list.",
			patch: `{"spec": {"$setElementOrder/tolerations": [{"key": "a"}], "$setElementOrder/hostNetwork": [], "$setElementOrder/none": [], "$setElementOrder/volumes": null,
				"$setElementOrder/initContainers": [{"name": "a"}, {"name": "a"}], "$setElementOrder/hostAliases": [{"ip": "a", "hostnames": []}, null, {"ip": 1}]}}`,
			want: []string{
				".spec.$setElementOrder/hostAliases[0]: Invalid value: must have the field ip and no other",
				".spec.$setElementOrder/hostAliases[1]: Invalid value: must have the field ip and no other",
				".spec.$setElementOrder/hostAliases[2].ip: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
				".spec.$setElementOrder/hostNetwork: Forbidden: " + notMerged + "hostNetwork is none",
				".spec.$setElementOrder/initContainers[1]: Invalid value: stands twice: an order has each item once",
				".spec.$setElementOrder/none: Forbidden: " + notMerged + "none is none",
				".spec.$setElementOrder/tolerations: Forbidden: " + notMerged + "tolerations is none",
				".spec.$setElementOrder/volumes: Invalid value: must be a list with the keys of the items",
			},
		},
		"SetElementOrderOfOtherItems": {
			reason: "The items of the patch must be in the order.",
			patch: `{"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a"}, {"name": "b"}],
				"$setElementOrder/volumes": [{"name": "a"}], "volumes": [{"name": "a"}, {"name": "c", "$patch": "delete"}, {"name": "b"}]},
				"metadata": {"$setElementOrder/finalizers": ["a", 1, null]}}`,
			want: []string{
				".metadata.$setElementOrder/finalizers[1]: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
				".metadata.$setElementOrder/finalizers[2]: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
				".spec.$setElementOrder/containers: Invalid value: must contain the items of the patch in the same order: item 1 is missing or comes earlier",
				".spec.$setElementOrder/volumes: Invalid value: must contain the items of the patch in the same order: item 2 is missing or comes earlier",
			},
		},
		"DeleteFromPrimitiveList": {
			reason: "The API server's library panics on objects, and takes the list and its deletions in no fixed order.",
			patch: `{"metadata": {"finalizers": ["a"], "$deleteFromPrimitiveList/finalizers": ["b"]}, "spec": {"$deleteFromPrimitiveList/containers": [{}], "$deleteFromPrimitiveList": [],
				"containers": [{"name": "a", "$deleteFromPrimitiveList/args": [{}], "$deleteFromPrimitiveList/command": null}]}}`,
			want: []string{
				".metadata.$deleteFromPrimitiveList/finalizers: Forbidden: must not stand beside finalizers, since the API server takes the two in no fixed order: use one",
				".spec.$deleteFromPrimitiveList: Forbidden: " + notPlain + " is none",
				".spec.$deleteFromPrimitiveList/containers: Forbidden: " + notPlain + "containers is none",
				".spec.containers[0].$deleteFromPrimitiveList/args[0]: Invalid value: must be a string: put it in quotes if it looks like a number or a boolean",
				".spec.containers[0].$deleteFromPrimitiveList/command: Invalid value: must be a list",
			},
		},
		"ManyErrors": {
			reason: "A condition has no room for more than ten.",
			patch:  `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1, "k": 1}`,
			want: func() (want []string) {
				for _, name := range "abcdefghij" {
					want = append(want, "."+string(name)+": Invalid value: unknown field")
				}
				return want
			}(),
		},
		"ManyErrorsBeforePanics": {
			reason: "Checks go on after the tenth error, and stay as careful.",
			patch: `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1, "metadata": {"$setElementOrder/finalizers": [{}, {}], "finalizers": [{}],
				"$deleteFromPrimitiveList/finalizers": [[], {}, null]}, "spec": {"containers": [{"name": {}}, {"name": []}, null], "$setElementOrder/containers": [{"name": {}}, {"name": {}}, {}]}}`,
			want: func() (want []string) {
				for _, name := range "abcdefghij" {
					want = append(want, "."+string(name)+": Invalid value: unknown field")
				}
				return want
			}(),
		},
		"LongNames": {
			reason: "A message stays readable.",
			patch:  `{"` + strings.Repeat("x", 5000) + `": 1}`,
			want:   []string{"." + strings.Repeat("x", 100) + "…: Invalid value: unknown field"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patch := rawPatch(tc.patch)
			var got []string
			for _, err := range patch.Validate(field.NewPath("patch")) {
				got = append(got, strings.TrimPrefix(err.Error(), "patch"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			_, err := patch.Apply(template(t, base), selector, overlay.At(field.NewPath("patch")))
			if len(tc.want) == 0 {
				require.NoError(t, err)
				return
			}
			invalid, ok := errors.AsType[*overlay.InvalidError](err)
			require.True(t, ok, "Apply returns an InvalidError: %v", err)
			if diff := cmp.Diff(patch.Validate(field.NewPath("patch")), invalid.Errors); diff != "" {
				t.Errorf("Apply and Validate differ:\n%s", diff)
			}
		})
	}
}

func TestApplyProtectsPods(t *testing.T) {
	expressions := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Exists"}, {Key: "canary", Operator: "DoesNotExist"}}}
	const (
		app    = `spec.podTemplate.metadata.labels[app]: Forbidden: must stay "web", by which the workload selects its pods: do not change or remove it`
		canary = `spec.podTemplate.metadata.labels[canary]: Forbidden: must stay unset, since the workload selects its pods by it: remove it from the patch`
		none   = "spec.podTemplate.spec.containers: Required value: the patch removes all containers of the pod: keep one"
	)
	cases := map[string]struct {
		selector *metav1.LabelSelector
		patch    string
		want     string
	}{
		"ChangedLabel":      {patch: `{metadata: {labels: {app: other}}}`, want: app},
		"RemovedLabel":      {patch: `{metadata: {labels: {app: null}}}`, want: app},
		"EmptyLabel":        {patch: `{metadata: {labels: {app: ""}}}`, want: app},
		"ReplacedLabels":    {patch: `{metadata: {labels: {$patch: replace, tier: back}}}`, want: app},
		"DeletedLabels":     {patch: `{metadata: {labels: {$patch: delete}}}`, want: app},
		"NoLabels":          {patch: `{metadata: {labels: null}}`, want: app},
		"RetainedLabels":    {patch: `{metadata: {labels: {$retainKeys: [tier]}}}`, want: app},
		"NoMetadata":        {patch: `{metadata: null}`, want: app},
		"RetainedSpec":      {patch: `{$retainKeys: [spec]}`, want: app},
		"Expressions":       {selector: expressions, patch: `{metadata: {labels: {app: other, canary: ""}}}`, want: app + "; " + canary},
		"OtherLabel":        {patch: `{metadata: {labels: {tier: back}}}`},
		"NoSelector":        {selector: &metav1.LabelSelector{}, patch: `{metadata: {labels: {app: other}}}`},
		"NoSpec":            {patch: `{spec: null}`, want: none},
		"NoContainers":      {patch: `{spec: {containers: null}}`, want: none},
		"ReplacedWithNone":  {patch: `{spec: {containers: [{$patch: replace}]}}`, want: none},
		"ReplacedSpec":      {patch: `{spec: {$patch: replace, hostNetwork: true}}`, want: none},
		"DeletedContainers": {patch: `{spec: {containers: [{name: web, $patch: delete}, {name: metrics, $patch: delete}]}}`, want: none},
		"Both":              {patch: `{metadata: {labels: {app: null}}, spec: {containers: null}}`, want: none + "; " + app},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.selector == nil {
				tc.selector = selector
			}
			_, err := patchOf(t, tc.patch).Apply(template(t, base), tc.selector)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
			require.True(t, apierrors.IsInvalid(err))
		})
	}
}

func TestInvalidError(t *testing.T) {
	_, err := rawPatch(`{"spec": {"a": 1, "b": 2}}`).Apply(corev1.PodTemplateSpec{}, nil)
	require.EqualError(t, err, "spec.podTemplate.spec.a: Invalid value: unknown field; spec.podTemplate.spec.b: Invalid value: unknown field")
	require.True(t, apierrors.IsInvalid(err))
	invalid, ok := errors.AsType[*overlay.InvalidError](err)
	require.True(t, ok)
	require.Equal(t, "InvalidPodTemplate", invalid.Reason())
}

// Environment variables may be secret, and conditions show the errors. So the errors contain no values.
func TestErrorsHaveNoValues(t *testing.T) {
	const secret = "hunter2"
	for _, patch := range []string{
		`{spec: {containers: [{name: a, env: [{name: b, value: [hunter2]}]}]}}`,
		`{spec: {containers: [{name: a, env: {b: hunter2}}]}}`,
		`{spec: {containers: [{name: a, args: hunter2, resources: {limits: {cpu: hunter2}}}]}}`,
		`{spec: {hostNetwork: hunter2, priority: hunter2, tolerations: hunter2}}`,
		`{spec: {containers: [{image: hunter2}]}}`,
	} {
		_, err := patchOf(t, patch).Apply(template(t, base), selector)
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
	}
}

// If the API server would refuse the base, the program has a mistake, and not the user. So the error is not an
// InvalidError.
func TestApplyWithWrongBase(t *testing.T) {
	given := corev1.PodTemplateSpec{Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{}}}}
	_, err := patchOf(t, `{spec: {imagePullSecrets: [{name: a}]}}`).Apply(given, nil)
	require.ErrorContains(t, err, "merge into the pod template: ")
	require.False(t, apierrors.IsInvalid(err))
}
