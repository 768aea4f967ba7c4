package v1alpha1

import (
	"math"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// annotationMemory on an object of this version is the memory of its v1 form, if memoryMB cannot hold it: a fraction of a megabyte.
const annotationMemory = "cache.example.com/memory"

// The bounds of memoryMB, which are the bounds of memory too.
const minimumMB, maximumMB = 1, 1 << 20

// plainQuantity matches quantities without an exponent.
var plainQuantity = regexp.MustCompile(`^[0-9.]{1,30}([KMGTPE]i|[numkMGTPE])?$`)

// ConvertTo writes this Memcached into one of version v1.
func (m *Memcached) ConvertTo(dst conversion.Hub) error {
	to := dst.(*cachev1.Memcached)
	m.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	delete(to.Annotations, annotationMemory)
	to.Spec = cachev1.MemcachedSpec{
		Size: m.Spec.Size, Image: m.Spec.Image, Resources: m.Spec.Resources.DeepCopy(), Memory: memory(m), MaxConnections: m.Spec.MaxConnections,
	}
	to.Status = cachev1.MemcachedStatus(*m.Status.DeepCopy())
	return nil
}

// ConvertFrom reads a Memcached of version v1 into this one.
func (m *Memcached) ConvertFrom(src conversion.Hub) error {
	from := src.(*cachev1.Memcached)
	from.ObjectMeta.DeepCopyInto(&m.ObjectMeta)
	delete(m.Annotations, annotationMemory)
	m.Spec = MemcachedSpec{
		Size: from.Spec.Size, Image: from.Spec.Image, Resources: from.Spec.Resources.DeepCopy(), MaxConnections: from.Spec.MaxConnections,
	}
	if from.Spec.Memory != nil {
		m.Spec.MemoryMB = megabytes(from.Spec.Memory.Quantity)
		if !holds(m.Spec.MemoryMB, from.Spec.Memory.Quantity) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotationMemory, from.Spec.Memory.String())
		}
	}
	m.Status = MemcachedStatus(*from.Status.DeepCopy())
	return nil
}

// memory returns the memory of the v1 form. The annotation counts only as long as memoryMB is what ConvertFrom has made of it: a user who
// has edited memoryMB since means the new value.
func memory(m *Memcached) *cachev1.Quantity {
	if kept, valid := keptMemory(m); valid && megabytes(kept) == m.Spec.MemoryMB {
		return &cachev1.Quantity{Quantity: kept}
	}
	if m.Spec.MemoryMB == 0 {
		return nil
	}
	return &cachev1.Quantity{Quantity: quantity(m.Spec.MemoryMB)}
}

// keptMemory returns the quantity in the annotation, if there is one that v1 allows. Anybody may write annotations, and no schema checks
// them. A number with a large exponent is not parsed: this would take half a minute.
func keptMemory(m *Memcached) (_ resource.Quantity, valid bool) {
	text := m.Annotations[annotationMemory]
	if !plainQuantity.MatchString(text) {
		return resource.Quantity{}, false
	}
	kept, err := resource.ParseQuantity(text)
	return kept, err == nil && kept.Cmp(quantity(minimumMB)) >= 0 && kept.Cmp(quantity(maximumMB)) <= 0
}

// megabytes returns what memoryMB shows of a memory: its whole megabytes of 1024 * 1024 bytes.
func megabytes(memory resource.Quantity) int32 {
	return int32(max(math.MinInt32, min(memory.Value()>>20, math.MaxInt32)))
}

func quantity(memoryMB int32) resource.Quantity {
	return *resource.NewQuantity(int64(memoryMB)<<20, resource.BinarySI)
}

// holds reports whether memoryMB alone says a memory. 0 says that it is unset.
func holds(memoryMB int32, memory resource.Quantity) bool {
	return memoryMB != 0 && memory.Cmp(quantity(memoryMB)) == 0
}
