package overlay

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// An alias is a second field or annotation that sets a field of a pod. The paths of both may contain an asterisk, which
// stands for the same name in both.
type alias struct{ field, other string }

const (
	appArmorAnnotation = "metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]"
	claimTemplate      = "spec.volumes[*].ephemeral.volumeClaimTemplate"
)

// aliases has all aliases that Kubernetes 1.35 and 1.36 support. A patch that sets an alias changes the effect of the field, although the
// pod template has the same value in the field.
//
// These annotations set nothing any more: seccomp.security.alpha.kubernetes.io/pod and container.seccomp.security.alpha.kubernetes.io/NAME
// since 1.27, scheduler.alpha.kubernetes.io/critical-pod since 1.16, security.alpha.kubernetes.io/sysctls and unsafe-sysctls since
// 1.11 (pkg/api/pod/warnings.go), pod.beta.kubernetes.io/init-containers since 1.8 (pkg/apis/core/v1/conversion.go),
// scheduler.alpha.kubernetes.io/tolerations and affinity since 1.8, pod.beta.kubernetes.io/hostname and subdomain since 1.7.
// The priority, the preemption policy and the overhead of a pod have to equal the values in its PriorityClass and
// RuntimeClass (plugin/pkg/admission).
var aliases = []alias{
	// The API server reads the alias if serviceAccountName is empty, in pods and pod templates, in all versions:
	// Convert_v1_PodSpec_To_core_PodSpec in pkg/apis/core/v1/conversion.go.
	{"spec.serviceAccountName", "spec.serviceAccount"},

	// The API server reads the annotation when a pod is created, if the container has no profile. The annotation then overrides a profile of
	// the pod. This holds in all versions: applyAppArmorVersionSkew in pkg/registry/core/pod/strategy.go.
	{"spec.containers[*].securityContext.appArmorProfile", appArmorAnnotation},
	{"spec.initContainers[*].securityContext.appArmorProfile", appArmorAnnotation},
	{"spec.securityContext.appArmorProfile", appArmorAnnotation},

	// In the claim that is created from the template, the annotation is read before the field, in all versions: PersistentVolumeClaimHasClass
	// in pkg/apis/core/helper/helpers.go, GetPersistentVolumeClaimClass in component-helpers.
	{claimTemplate + ".spec.storageClassName", claimTemplate + ".metadata.annotations[volume.beta.kubernetes.io/storage-class]"},

	// In the claim that is created from the template, if only one of the two fields is set, it is copied to the other field, since 1.24:
	// NormalizeDataSources in pkg/api/persistentvolumeclaim/util.go.
	{claimTemplate + ".spec.dataSource", claimTemplate + ".spec.dataSourceRef"},
}

// synonyms returns the pairs of paths in aliases, each pair in both directions.
var synonyms = sync.OnceValue(func() (pairs [][2]protectedPath) {
	for _, a := range aliases {
		field, err := parsePath(a.field)
		other, otherErr := parsePath(a.other)
		if err != nil || otherErr != nil {
			panic(fmt.Sprint("the table of aliases: ", err, otherErr))
		}
		pairs = append(pairs, [2]protectedPath{field, other}, [2]protectedPath{other, field})
	}
	return pairs
})

// withAliases returns a path, and the other paths that set the same field or a part of it.
func withAliases(path protectedPath) []protectedPath {
	paths := []protectedPath{path}
	for _, pair := range synonyms() {
		name, overlaps := overlap(path.steps, pair[0].steps)
		if !overlaps {
			continue
		}
		other := pair[1].named(name)
		if _, within := overlap(path.steps, other.steps); within && len(path.steps) <= len(other.steps) {
			continue
		}
		other.sameAs = pair[0].named(name).text
		paths = append(paths, other)
	}
	return paths
}

// overlap reports whether the two paths are equal, or one leads to a value inside the value of the other. If so, it
// returns the name for which the asterisk of the other path stands.
func overlap(path, other []step) (name keyPattern, overlaps bool) {
	name.open = true
	for i := range min(len(path), len(other)) {
		p, o := path[i].key, other[i].key
		switch {
		case !slices.Equal(path[i].field, other[i].field):
			return name, false
		case o.open && strings.HasPrefix(p.text, o.text):
			name = keyPattern{text: p.text[len(o.text):], open: p.open}
		case p != o && (!p.open || !strings.HasPrefix(o.text, p.text)):
			return name, false
		}
	}
	return name, true
}

// named returns the path with its asterisk replaced by the name.
func (p protectedPath) named(name keyPattern) protectedPath {
	p.steps = slices.Clone(p.steps)
	for i, s := range p.steps {
		if s.key.open {
			p.steps[i].key = keyPattern{text: s.key.text + name.text, open: name.open}
			p.text = strings.Replace(p.text, "*", name.String(), 1)
		}
	}
	return p
}
