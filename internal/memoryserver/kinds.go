package memoryserver

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are those that a server has. Servers with the same custom resource definitions share them.
type kinds struct {
	custom map[schema.GroupVersionKind]*kind
	mapper meta.RESTMapper
}

func (ks *kinds) find(gvk schema.GroupVersionKind) *kind {
	if k := builtInKinds()[gvk]; k != nil {
		return k
	}
	return ks.custom[gvk]
}

var known struct {
	sync.Mutex
	kinds map[string]*kinds // by the definitions' hashes, in order
}

func kindsWith(definitions []*definition) (*kinds, error) {
	var id strings.Builder
	for _, d := range definitions {
		id.WriteString(d.hash)
	}
	known.Lock()
	defer known.Unlock()
	if ks := known.kinds[id.String()]; ks != nil {
		return ks, nil
	}
	ks := &kinds{custom: map[schema.GroupVersionKind]*kind{}}
	for _, d := range definitions {
		for _, k := range d.kinds {
			if ks.find(k.gvk) != nil {
				return nil, fmt.Errorf("custom resource definition of %s: it is given twice, or a built-in kind", k.gvk)
			}
			ks.custom[k.gvk] = k
		}
	}
	ks.mapper = ks.newMapper()
	if known.kinds == nil {
		known.kinds = map[string]*kinds{}
	}
	known.kinds[id.String()] = ks
	return ks, nil
}

func (ks *kinds) newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, all := range []map[schema.GroupVersionKind]*kind{builtInKinds(), ks.custom} {
		for _, k := range all {
			scope := meta.RESTScopeRoot
			if k.namespaced {
				scope = meta.RESTScopeNamespace
			}
			mapper.AddSpecific(k.gvk, k.resource, k.resource.GroupVersion().WithResource(k.singular), scope)
		}
	}
	return mapper
}
