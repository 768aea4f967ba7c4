package main

import (
	"fmt"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	kindForm    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	versionForm = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	labelForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	majorForm   = regexp.MustCompile(`^v[1-9][0-9]*$`)
	moduleForm  = regexp.MustCompile(`^[A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*$`)
)

// ownKinds are the kinds of Kubernetes that a kind of another group would hide, or be hidden by: kubectl get services means one.
var ownKinds = strings.Fields(`Binding ComponentStatus ConfigMap ControllerRevision CronJob CustomResourceDefinition DaemonSet
	Deployment Endpoints EndpointSlice Event HorizontalPodAutoscaler Ingress IngressClass Job Lease LimitRange
	MutatingWebhookConfiguration Namespace NetworkPolicy Node PersistentVolume PersistentVolumeClaim Pod PodDisruptionBudget
	PodTemplate PriorityClass ReplicaSet ReplicationController ResourceQuota Role RoleBinding ClusterRole ClusterRoleBinding
	RuntimeClass Secret Service ServiceAccount StatefulSet StorageClass ValidatingWebhookConfiguration VolumeAttachment`)

// codeHosts have modules of many people, so their domains are nobody's API group. The domains of Kubernetes are
// reserved.
var codeHosts = []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "gitee.com", "sr.ht", "gopkg.in", "k8s.io", "sigs.k8s.io"}

// standardLibrary has the first elements of the import paths of Go's standard library.
var standardLibrary = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed encoding errors
	expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort
	strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak`)

// checkKind returns an error that says what to do if objects cannot be of a kind.
func checkKind(kind string) error {
	lower := strings.ToLower(kind)
	switch {
	case kind == "":
		return fmt.Errorf("name the kind of the new operator's objects: -kind Shop")
	case !kindForm.MatchString(kind):
		return fmt.Errorf("-kind %s: a kind begins with an upper-case letter and has letters and digits only, such as Shop", kind)
	case len(kind) > 50:
		return fmt.Errorf("-kind %s: choose one of at most 50 characters, since names of objects are made from it", kind)
	case strings.HasSuffix(kind, "List"):
		return fmt.Errorf("-kind %s: choose another one, since names with List at their end are those of lists", kind)
	case slices.ContainsFunc(ownKinds, func(own string) bool { return strings.ToLower(own) == lower }):
		return fmt.Errorf("-kind %s: choose another one, since Kubernetes has this kind itself", kind)
	case token.IsKeyword(lower) || types.Universe.Lookup(lower) != nil || lower == "init" || lower == "main":
		return fmt.Errorf("-kind %s: choose another one, since variables are named %s, which is a word of the Go language", kind, lower)
	}
	return nil
}

// checkGroup returns an error that says what to do if an API cannot be in a group.
func checkGroup(group string) error {
	labels := strings.Split(group, ".")
	switch {
	case len(labels) < 2 || len(group) > 200 ||
		slices.ContainsFunc(labels, func(label string) bool { return !labelForm.MatchString(label) || len(label) > 63 }):
		return fmt.Errorf("-group %s: a group is a domain name of yours in lower case, such as shop.example.com", group)
	case labels[len(labels)-2] == "k8s" && labels[len(labels)-1] == "io", strings.HasSuffix("."+group, ".kubernetes.io"):
		return fmt.Errorf("-group %s: choose another one, since k8s.io and kubernetes.io are reserved for Kubernetes", group)
	}
	return nil
}

// checkVersion returns an error that says what to do if an API cannot have a version.
func checkVersion(version string) error {
	if !versionForm.MatchString(version) {
		return fmt.Errorf("-version %s: a version of an API looks like v1alpha1, v1beta1 or v1", version)
	}
	return nil
}

// checkModule returns an error that says what to do if a module cannot have a path. The command go checks the path again.
func checkModule(module string) error {
	switch {
	case module == "":
		return fmt.Errorf("name the path of the new module: -module example.com/shop")
	case !moduleForm.MatchString(module) || path.Clean(module) != module:
		return fmt.Errorf("-module %s: the path of a module looks like example.com/shop or github.com/me/shop", module)
	case module == libraryPath || strings.HasPrefix(module, libraryPath+"/"):
		return fmt.Errorf("-module %s: choose a path of your own, such as example.com/shop", module)
	}
	first, _, _ := strings.Cut(module, "/")
	if slices.Contains(standardLibrary, first) {
		return fmt.Errorf("-module %s: choose another path, since Go's standard library has a package %s", module, first)
	}
	for _, required := range requiredModules() {
		if strings.HasPrefix(module+"/", required+"/") || strings.HasPrefix(required, module+"/") {
			return fmt.Errorf("-module %s: choose another path, since the new operator requires the module %s", module, required)
		}
	}
	return nil
}

// lastElement returns the last element of a module's path that is not a major version.
func lastElement(module string) string {
	if last := path.Base(module); !majorForm.MatchString(last) {
		return last
	}
	return path.Base(path.Dir(module))
}

// defaultGroup returns the last element of a module's path before its domain: shop.example.com for example.com/shop. If
// the domain does not belong to the module's owner, example.com takes its place.
func defaultGroup(module string) string {
	domain, _, _ := strings.Cut(strings.ToLower(module), "/")
	if !strings.Contains(domain, ".") || slices.Contains(codeHosts, domain) || domain == strings.ToLower(module) {
		domain = "example.com"
	}
	label := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(lastElement(module)), "-"), "-")
	return label + "." + domain
}

// pluralOf returns the plural of a kind in lower case, for the names of resources. A marker in the copy says it, so that
// controller-gen need not guess it in the same way.
func pluralOf(lower string) string {
	switch {
	case strings.HasSuffix(lower, "y") && len(lower) > 1 && !strings.ContainsRune("aeiou", rune(lower[len(lower)-2])):
		return lower[:len(lower)-1] + "ies"
	case slices.ContainsFunc([]string{"s", "x", "z", "ch", "sh"}, func(end string) bool { return strings.HasSuffix(lower, end) }):
		return lower + "es"
	default:
		return lower + "s"
	}
}
