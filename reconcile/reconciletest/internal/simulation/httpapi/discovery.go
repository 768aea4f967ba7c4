package httpapi

import (
	"net/http"
	"runtime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers requests for the API groups, their versions and resources, and for the server's version.
func (t *Transport) discover(r *http.Request) (found any, ok bool) {
	path := strings.Trim(r.URL.Path, "/")
	switch group, isGroup := strings.CutPrefix(path, "apis/"); {
	case r.Method != http.MethodGet:
		return nil, false
	case path == "version":
		return version.Info{Major: "1", Minor: minor, GitVersion: "v1." + minor + ".0", GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH}, true
	case strings.HasPrefix(path, "openapi/v3"):
		return t.openAPI(strings.TrimPrefix(path, "openapi/v3"))
	case path == "api":
		return metav1.APIVersions{TypeMeta: typeMeta("APIVersions"), Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{}}, true
	case path == "apis":
		return metav1.APIGroupList{TypeMeta: typeMeta("APIGroupList"), Groups: t.groups()}, true
	case isGroup && !strings.Contains(group, "/"):
		for _, one := range t.groups() {
			if one.Name == group {
				one.TypeMeta = typeMeta("APIGroup")
				return one, true
			}
		}
		return nil, false
	}
	gv, rest, isVersion := splitPath(r.URL.Path)
	if !isVersion || len(rest) > 0 {
		return nil, false
	}
	resources := t.Server.Resources(gv)
	if len(resources) == 0 {
		return nil, false
	}
	return metav1.APIResourceList{TypeMeta: typeMeta("APIResourceList"), GroupVersion: gv.String(), APIResources: resources}, true
}

// openAPI returns the OpenAPI document of a group and version with custom kinds. If path is "", it returns the list of these documents.
// There are none for built-in kinds, since clients know them.
func (t *Transport) openAPI(path string) (found any, ok bool) {
	if path == "" {
		paths := map[string]any{}
		for gv := range t.Server.OpenAPI() {
			paths["apis/"+gv.String()] = map[string]string{"serverRelativeURL": "/openapi/v3/apis/" + gv.String()}
		}
		return map[string]any{"paths": paths}, true
	}
	gv, rest, isVersion := splitPath(path)
	if !isVersion || len(rest) > 0 {
		return nil, false
	}
	found, ok = t.Server.OpenAPI()[gv]
	return found, ok
}

// minor is the minor version of the API server that the server in memory imitates.
const minor = "37"

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// groups returns the API groups, except the core group, which has no name. In each group the preferred version comes first.
func (t *Transport) groups() (all []metav1.APIGroup) {
	for _, gv := range t.Server.Versions() {
		if gv.Group == "" {
			continue
		}
		one := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if n := len(all); n == 0 || all[n-1].Name != gv.Group {
			all = append(all, metav1.APIGroup{Name: gv.Group, PreferredVersion: one})
		}
		last := &all[len(all)-1]
		last.Versions = append(last.Versions, one)
	}
	return all
}
