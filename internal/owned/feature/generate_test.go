package feature

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

func TestPlanFill(t *testing.T) {
	one, two := record.HashOfTrigger("1"), record.HashOfTrigger("2")
	rotating := func(trigger string) []owned.GeneratedKey {
		return []owned.GeneratedKey{{Name: "password", Length: 8, RotateOn: func(client.Object) string { return "" }, Trigger: trigger}}
	}
	live := func(value, rotated string) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{"password": []byte(value), "other": []byte("x")}}
		if rotated != "" {
			s.Annotations = map[string]string{record.Rotated: rotated}
		}
		return s
	}
	type want struct {
		Keep, Fill bool
		Triggered  bool
	}
	cases := map[string]struct {
		reason string
		keys   []owned.GeneratedKey
		live   *corev1.Secret
		want   want
	}{
		"NoSecret":       {reason: "A new Secret gets all values.", keys: rotating(one), want: want{Fill: true}},
		"Missing":        {reason: "A missing key is filled.", keys: rotating(one), live: &corev1.Secret{}, want: want{Fill: true}},
		"Empty":          {reason: "An empty value protects nothing.", keys: rotating(one), live: live("", "password="+one), want: want{Fill: true}},
		"Present":        {reason: "What is there stays, whoever put it in.", keys: []owned.GeneratedKey{{Name: "password", Length: 8}}, live: live("theirs", ""), want: want{Keep: true}},
		"SameTrigger":    {reason: "A rotation happens once for each trigger.", keys: rotating(one), live: live("a", "password="+one), want: want{Keep: true}},
		"AnotherTrigger": {reason: "The trigger has changed.", keys: rotating(two), live: live("a", "password="+one), want: want{Fill: true, Triggered: true}},
		"FirstTrigger":   {reason: "The trigger appears on the owner for the first time.", keys: rotating(one), live: live("a", "password="+noTrigger), want: want{Fill: true, Triggered: true}},
		"NoTrigger":      {reason: "To remove the trigger asks for nothing.", keys: rotating(noTrigger), live: live("a", "password="+one), want: want{Keep: true, Triggered: true}},
		"NeverRecorded":  {reason: "The value is older than RotateOn: somebody may use it.", keys: rotating(one), live: live("a", ""), want: want{Keep: true}},
		"RecordOfOthers": {reason: "The record of another key says nothing of this one.", keys: rotating(one), live: live("a", "other="+two), want: want{Keep: true}},
		"RecordBroken":   {reason: "Whatever stands in the annotation, no value is lost.", keys: rotating(one), live: live("a", "password,=,,"), want: want{Keep: true}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var plan FillPlan
			if test.live == nil {
				plan = PlanFill(test.keys, nil)
			} else {
				plan = PlanFill(test.keys, test.live)
			}
			got := want{Keep: string(plan.keep["password"]) != "", Fill: len(plan.Fill) == 1, Triggered: plan.Triggered}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s\n%s", test.reason, diff)
			}
		})
	}
}

func TestWithoutGenerated(t *testing.T) {
	rotated := record.HashOfTrigger("3 days")
	password := owned.GeneratedKey{Name: "password", Length: 8}
	rotating := owned.GeneratedKey{Name: "password", Length: 8, RotateOn: func(client.Object) string { return "3 days" }}
	cases := map[string]struct {
		reason      string
		key         owned.GeneratedKey
		data        map[string]any
		want        map[string]any // the data
		annotations map[string]string
		generated   bool
	}{
		"NoValue":   {reason: "The key is generated.", key: password, data: map[string]any{"other": "eA=="}, want: map[string]any{"other": "eA=="}, generated: true},
		"Empty":     {reason: "An empty value would be sent, and differ from the live one.", key: password, data: map[string]any{"password": "", "other": "eA=="}, want: map[string]any{"other": "eA=="}, generated: true},
		"EmptyOnly": {reason: "A typed Secret is encoded without data too.", key: password, data: map[string]any{"password": ""}, generated: true},
		"OwnValue":  {reason: "What the builder sets is kept.", key: rotating, data: map[string]any{"password": "eA=="}, want: map[string]any{"password": "eA=="}},
		"RotateOn": {
			reason: "A change of the trigger is a change of what is desired.", key: rotating, data: map[string]any{},
			annotations: map[string]string{record.Rotated: "password=" + rotated}, generated: true,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": test.data}}
			typed := &corev1.Secret{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(secret.Object, typed))
			for _, given := range []client.Object{secret, typed} {
				before := given.DeepCopyObject()
				got, generated := WithoutGenerated(&owned.Owner{}, given, []owned.GeneratedKey{test.key})
				require.Equal(t, before, given, "the caller's object is not modified")
				require.Equal(t, test.annotations, got.GetAnnotations(), test.reason)
				require.Equal(t, test.generated, len(generated) == 1, test.reason)
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
				require.NoError(t, err)
				data, _ := fields["data"].(map[string]any)
				require.Equal(t, test.want, data, test.reason)
			}
		})
	}
}

func TestRandomText(t *testing.T) {
	seen, counts := map[string]bool{}, map[rune]int{}
	for range 200 {
		text := string(randomText(t.Context(), 310))
		require.Len(t, text, 310)
		require.False(t, seen[text], "no value comes twice")
		seen[text] = true
		for _, c := range text {
			counts[c]++
		}
	}
	require.Len(t, counts, len(generatedAlphabet), "every character of the alphabet, and no other")
	for c, n := range counts {
		require.Contains(t, generatedAlphabet, string(c))
		require.InDelta(t, 1000, n, 250, "%c is as frequent as the others", c) // 8 standard deviations
	}
	require.Empty(t, strings.Trim(generatedAlphabet, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"), "nothing with a meaning in a URL or a shell")
}
