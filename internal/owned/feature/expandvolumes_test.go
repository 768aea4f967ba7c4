package feature

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGrowthOf(t *testing.T) {
	cases := map[string]struct {
		reason     string
		want, live []corev1.PersistentVolumeClaim
		grown      []string // for each claim template that grows: its name, the old size and the new size
		err        string
	}{
		"Same":          {"Nothing has to grow.", claimTemplates("data", "1Gi"), claimTemplates("data", "1Gi"), nil, ""},
		"SameInOther":   {"Sizes are compared by value.", claimTemplates("data", "1024Mi"), claimTemplates("data", "1Gi"), nil, ""},
		"Larger":        {"One grows.", claimTemplates("data", "2Gi", "log", "1Gi"), claimTemplates("log", "1Gi", "data", "1Gi"), []string{"data", "1Gi", "2Gi"}, ""},
		"Both":          {"Both grow.", claimTemplates("data", "2Gi", "log", "3Gi"), claimTemplates("data", "1Gi", "log", "1Gi"), []string{"data", "1Gi", "2Gi", "log", "1Gi", "3Gi"}, ""},
		"AnotherName":   {"A new template is another change, which the API server refuses.", claimTemplates("new", "2Gi"), claimTemplates("data", "1Gi"), nil, ""},
		"None":          {"So is one that is dropped.", nil, claimTemplates("data", "1Gi"), nil, ""},
		"WithoutASize":  {"The API server refuses it.", claimTemplates("data", ""), claimTemplates("data", "1Gi"), nil, ""},
		"LiveWithoutIt": {"A size where there was none is larger.", claimTemplates("data", "1Gi"), claimTemplates("data", ""), []string{"data", "0", "1Gi"}, ""},
		"Smaller": {"Volumes cannot shrink.", claimTemplates("data", "1Gi"), claimTemplates("data", "2Gi"), nil,
			`StatefulSet.apps "web" is invalid: spec.volumeClaimTemplates[data].spec.resources.requests.storage: Invalid value: "1Gi": the live claim template requests 2Gi, and volumes cannot shrink: request at least as much`},
		"SmallerAndLarger": {"Nothing grows if something cannot be done.", claimTemplates("data", "2Gi", "log", "1Gi"), claimTemplates("data", "1Gi", "log", "2Gi"), nil,
			`StatefulSet.apps "web" is invalid: spec.volumeClaimTemplates[log].spec.resources.requests.storage: Invalid value: "1Gi": the live claim template requests 2Gi, and volumes cannot shrink: request at least as much`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			grown, err := growthOf("web", test.want, test.live)
			if test.err != "" {
				require.EqualError(t, err, test.err, test.reason)
				require.True(t, apierrors.IsInvalid(err))
				return
			}
			require.NoError(t, err, test.reason)
			var got []string
			for _, g := range grown {
				got = append(got, g.Template, g.From.String(), g.To.String())
			}
			if diff := cmp.Diff(test.grown, got); diff != "" {
				t.Errorf("%s\n%s", test.reason, diff)
			}
		})
	}
}

func TestWantedSize(t *testing.T) {
	grown := []VolumeGrowth{{Template: "data", To: resource.MustParse("2Gi")}, {Template: "data-web", To: resource.MustParse("3Gi")}}
	cases := map[string]struct {
		reason, claim, want string
	}{
		"First":        {"The claim of an ordinal.", "data-web-0", "2Gi"},
		"Many":         {"Ordinals have any number of digits.", "data-web-120", "2Gi"},
		"OtherSet":     {"A StatefulSet whose name begins with ours may have the same labels.", "data-web-2-0", ""},
		"OtherName":    {"The name of the StatefulSet is missing.", "data-0", ""},
		"OfNoOrdinal":  {"Somebody's own claim.", "data-web-backup", ""},
		"Negative":     {"There is no such ordinal.", "data-web--1", ""},
		"LongTemplate": {"The name of one template begins with that of another one and of the StatefulSet.", "data-web-web-0", "3Gi"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			size, ok := WantedSize(test.claim, "web", grown)
			require.Equal(t, test.want != "", ok, test.reason)
			if ok {
				require.Equal(t, test.want, size.String(), test.reason)
			}
		})
	}
}

// claimTemplates returns claim templates of these names and sizes.
func claimTemplates(namesAndSizes ...string) (all []corev1.PersistentVolumeClaim) {
	for i := 0; i < len(namesAndSizes); i += 2 {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: namesAndSizes[i]}}
		if size := namesAndSizes[i+1]; size != "" {
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		all = append(all, claim)
	}
	return all
}
