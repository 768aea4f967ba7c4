package launch

// MemcachedV1alpha1 returns the edits that make the Memcached operator of before v1: it knows v1alpha1 alone. The working directory must be the
// root of the repository.
func MemcachedV1alpha1() []SourceEdit {
	const folder = "examples/memcached/"
	return []SourceEdit{
		{File: folder + "api/v1/groupversion_info.go", Old: `Version: "v1"`, New: `Version: "v1alpha1"`},
		{File: folder + "api/v1/memcached_types.go", Old: `json:"memory,omitempty"`, New: `json:"memoryMB,omitempty"`},
		{File: folder + "controller/deployment.go", Old: "m.Spec.Memory.Value() >> 20", New: "m.Spec.Memory.Value()"},
		{File: folder + "conversion.go", Old: "utilruntime.Must(cachev1alpha1.AddToScheme(scheme))", New: "_, _ = utilruntime.Must, cachev1alpha1.AddToScheme"},
	}
}
