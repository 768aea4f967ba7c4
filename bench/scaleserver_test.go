package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/bench/api"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/ownedresources"
)

// scaleServer serves lists and watches of generated objects. It holds one object of each kind, and makes all others from it, so
// that it can serve more objects than an API server on this machine could store. Every other request goes to the API server.
type scaleServer struct {
	size       int
	namespaces int
	resources  map[string]*generatedResource // by resource
	rest       http.Handler
}

// generatedResource makes the objects of one kind. The name, the namespace, the UIDs and the rest of what differs between two
// objects are strings of the same length, so they are replaced in the encoded object.
type generatedResource struct {
	kind     schema.GroupVersionKind
	encoded  []string // literal text, a token, literal text, a token, …
	protobuf bool
	applied  []string // by object: the annotation of package ownedresources

	mu       sync.Mutex
	revision int           // the revision of the objects: 0 at first, one more after each storm
	watches  chan struct{} // closed when the watches have to end
	storm    chan struct{} // closed when there is a new revision
	expired  bool          // the next watch has to start with a list
}

// What stands for the strings of an object in the encoded objects.
const (
	tokenName      = "site-XXXXX"
	tokenNamespace = "team-XXXXX"
	tokenVersion   = "7777777777"
	tokenUID       = "77777777-0000-4000-8000-000000000000"
	tokenOwner     = "88888888-0000-4000-8000-000000000000"
	tokenAddress   = "10.177.177.177"
	tokenApplied   = "v1:created:XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"
)

func scaleName(i int) string           { return fmt.Sprintf("site-%05d", i) }
func (s *scaleServer) ns(i int) string { return fmt.Sprintf("team-%05d", i%s.namespaces) }

// siteUID returns the UID of a Site, or of one of its children. These UIDs differ in the last group.
func siteUID(i, child int) string {
	return fmt.Sprintf("%08x-5c1d-4f5e-9d7a-%06x%06x", uint32(i)*2654435761, child, i)
}

// newScaleServer makes the objects from a converged site. It is the API server at config for all other requests.
func newScaleServer(config *rest.Config, size, namespaces int, namespace string) (*scaleServer, error) {
	s := &scaleServer{size: size, namespaces: namespaces, resources: map[string]*generatedResource{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	s.rest = proxy

	applied := recorder{Client: c, applied: map[string][]string{}}
	set := ownedresources.Ensure(ownedresources.Build(deployment), ownedresources.Build(service))
	set.SetName("children")
	for i := range size {
		site := &api.Site{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns(i), Name: scaleName(i), UID: types.UID(siteUID(i, 0)), ResourceVersion: "1"}}
		site.Spec = api.SiteSpec{Image: "nginx:1.27", Replicas: 2}
		_ = set.Reconcile(context.Background(), &applied, site) // the error says that the Deployment is not ready yet
	}

	key := client.ObjectKey{Namespace: namespace, Name: scaleName(0)}
	var site api.Site
	if err := c.Get(context.Background(), key, &site); err != nil {
		return nil, err
	}
	for resource, obj := range map[string]client.Object{"sites": &api.Site{}, "deployments": &appsv1.Deployment{}, "services": &corev1.Service{}} {
		if err := c.Get(context.Background(), key, obj); err != nil {
			return nil, err
		}
		if s.resources[resource], err = newGeneratedResource(obj, &site, scheme, applied.applied[resource]); err != nil {
			return nil, fmt.Errorf("%s: %w", resource, err)
		}
	}
	return s, nil
}

func newGeneratedResource(obj client.Object, site *api.Site, scheme *runtime.Scheme, applied []string) (*generatedResource, error) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	r := &generatedResource{kind: kinds[0], applied: applied, watches: make(chan struct{}), storm: make(chan struct{})}
	annotation := obj.GetAnnotations()[record.Applied]
	owner, uid := string(site.UID), string(obj.GetUID())
	obj.SetResourceVersion(tokenVersion)
	obj.SetNamespace(tokenNamespace)
	if service, ok := obj.(*corev1.Service); ok && service.Spec.ClusterIP != corev1.ClusterIPNone {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = tokenAddress, []string{tokenAddress}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.kind)
	encoded, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer(owner, tokenOwner, uid, tokenUID, scaleName(0), tokenName).Replace(string(encoded))
	if obj.GetUID() == site.UID {
		text = strings.ReplaceAll(text, tokenOwner, tokenUID)
	}
	if annotation != "" {
		text = strings.ReplaceAll(text, annotation[:len(tokenApplied)], tokenApplied)
	}
	r.encoded = split(text)
	if message, ok := obj.(interface {
		Unmarshal([]byte) error
		Marshal() ([]byte, error)
	}); ok {
		r.protobuf = true
		if err := json.Unmarshal([]byte(text), obj); err != nil {
			return nil, err
		}
		encoded, err := message.Marshal()
		if err != nil {
			return nil, err
		}
		r.encoded = split(string(encoded))
	}
	return r, nil
}

// split splits a text before and behind each token.
func split(text string) (parts []string) {
	for {
		first, found := len(text), ""
		for _, token := range []string{tokenName, tokenNamespace, tokenVersion, tokenUID, tokenOwner, tokenAddress, tokenApplied} {
			if i := strings.Index(text, token); i >= 0 && i < first {
				first, found = i, token
			}
		}
		parts = append(parts, text[:first])
		if found == "" {
			return parts
		}
		parts = append(parts, found)
		text = text[first+len(found):]
	}
}

// recorder is a client that reads nothing, and records the annotation of each child that is created, by the resource.
type recorder struct {
	client.Client
	mu      sync.Mutex // the children of one object are created at once
	applied map[string][]string
}

func (r *recorder) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (r *recorder) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (r *recorder) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	resource := "services"
	if _, ok := obj.(*appsv1.Deployment); ok {
		resource = "deployments"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied[resource] = append(r.applied[resource], obj.GetAnnotations()[record.Applied])
	obj.SetUID("created")
	obj.SetResourceVersion("1")
	return nil
}

// object returns an encoded object. It is one message of protobuf, or JSON.
func (s *scaleServer) object(r *generatedResource, i, revision int) []byte {
	child := map[string]int{"Site": 0, "Deployment": 1, "Service": 2}[r.kind.Kind]
	values := map[string]string{
		tokenName: scaleName(i), tokenNamespace: s.ns(i), tokenVersion: fmt.Sprintf("%010d", 1_000_000_000*(revision+1)+i),
		tokenUID: siteUID(i, child), tokenOwner: siteUID(i, 0),
		tokenAddress: fmt.Sprintf("10.%03d.%03d.%03d", 100+i>>14&0x7f, 100+i>>7&0x7f, 100+i&0x7f),
	}
	if r.applied != nil {
		values[tokenApplied] = r.applied[i][:len(tokenApplied)]
	}
	var obj []byte
	for n, part := range r.encoded {
		if n%2 == 1 {
			part = values[part]
		}
		obj = append(obj, part...)
	}
	if !r.protobuf {
		return obj
	}
	return unknown(r.kind, obj)
}

// unknown returns a message in the envelope of Kubernetes.
func unknown(kind schema.GroupVersionKind, message []byte) []byte {
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, Raw: message}
	encoded, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), encoded...)
}

// event writes an event of a watch.
func (r *generatedResource) event(w http.ResponseWriter, buffer *bytes.Buffer, eventType string, obj []byte) error {
	buffer.Reset()
	if !r.protobuf {
		fmt.Fprintf(buffer, `{"type":%q,"object":%s}`+"\n", eventType, obj)
	} else {
		event := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: obj}}
		encoded, err := event.Marshal()
		if err != nil {
			return err
		}
		_ = binary.Write(buffer, binary.BigEndian, uint32(len(encoded)))
		buffer.Write(encoded)
	}
	_, err := w.Write(buffer.Bytes())
	return err
}

// bookmark is the end of the initial events.
func (r *generatedResource) bookmark(version string) []byte {
	meta := metav1.ObjectMeta{ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
	if r.protobuf {
		var message interface{ Marshal() ([]byte, error) } = &appsv1.Deployment{ObjectMeta: meta}
		if r.kind.Kind == "Service" {
			message = &corev1.Service{ObjectMeta: meta}
		}
		encoded, err := message.Marshal()
		if err != nil {
			panic(err)
		}
		return unknown(r.kind, encoded)
	}
	encoded, err := json.Marshal(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: r.kind.GroupVersion().String(), Kind: r.kind.Kind}, ObjectMeta: meta})
	if err != nil {
		panic(err)
	}
	return encoded
}

func (s *scaleServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch r := s.resources[path[len(path)-1]]; {
	case path[0] == "storm":
		s.resources[path[1]].begin(false)
	case path[0] == "break":
		for _, r := range s.resources {
			r.begin(true)
		}
	case request.Method == http.MethodGet && r != nil && request.URL.Query().Get("watch") != "":
		s.watch(w, request, r)
	case request.Method == http.MethodGet && r != nil:
		http.Error(w, "this server has no lists: use a client with WatchList", http.StatusNotImplemented)
	case request.Method != http.MethodGet && path[0] == "apis" && strings.Contains(request.URL.Path, "bench.opblocks.dev"):
		http.Error(w, "no pass should write: "+request.Method+" "+request.URL.Path, http.StatusTeapot)
	default:
		s.rest.ServeHTTP(w, request)
	}
}

// begin begins a storm of events, or breaks all watches so that they cannot be resumed.
func (r *generatedResource) begin(expire bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if expire {
		r.expired = true
		close(r.watches)
		r.watches = make(chan struct{})
		return
	}
	r.revision++
	close(r.storm)
	r.storm = make(chan struct{})
}

func (s *scaleServer) watch(w http.ResponseWriter, request *http.Request, r *generatedResource) {
	initial := request.URL.Query().Get("sendInitialEvents") == "true"
	r.mu.Lock()
	revision, ended, storm := r.revision, r.watches, r.storm
	gone := r.expired && !initial
	if initial {
		r.expired = false
	}
	r.mu.Unlock()
	if gone {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		return
	}
	contentType := "application/json"
	if r.protobuf {
		contentType = "application/vnd.kubernetes.protobuf;stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	var buffer bytes.Buffer
	send := func(eventType string) error {
		for i := range s.size {
			if err := r.event(w, &buffer, eventType, s.object(r, i, revision)); err != nil {
				return err
			}
		}
		w.(http.Flusher).Flush()
		return nil
	}
	if initial {
		if send("ADDED") != nil {
			return
		}
		_ = r.event(w, &buffer, "BOOKMARK", r.bookmark(fmt.Sprintf("%010d", 1_000_000_000*(revision+1)+s.size)))
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case <-request.Context().Done():
			return
		case <-ended:
			return
		case <-storm:
			r.mu.Lock()
			revision, storm = r.revision, r.storm
			r.mu.Unlock()
			if send("MODIFIED") != nil {
				return
			}
		}
	}
}

// serveScale is the process of the server. It ends when its standard input is closed.
func serveScale(kubeconfig string, size, namespaces int, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	s, err := newScaleServer(config, size, namespaces, namespace)
	if err != nil {
		return err
	}
	return listen(s, os.Stdout)
}
