package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// localhost is the host in the addresses of webhooks. An operator that makes its own certificate can make one for a name more easily than
// for an address.
const localhost = "localhost"

// WebhookOptions say which webhooks the API server calls, for [NewWebhooks] and [ControlPlane.InstallWebhooks]. Paths are relative to the
// working directory, which in a test is the folder of its package. Subfolders are not read.
type WebhookOptions struct {
	// Paths are files and folders with configurations of admission webhooks, as controller-gen writes them, such as
	// "../config/webhook/base". Other objects in them are left out.
	Paths []string

	// CRDs are files and folders with CustomResourceDefinitions. Each one with several versions gets a conversion webhook at the path /convert,
	// where controller-runtime serves it, unless its file has the conversion strategy None.
	CRDs []string

	// WithoutCertificate leaves the folder of the serving certificate empty, and sets no CA in the objects. Use it for an operator that
	// makes both, as cert-controller does. The certificate has to be valid for the name "localhost".
	WithoutCertificate bool
}

// Webhooks are admission webhooks and conversion webhooks that a manager on this machine serves. The API server calls them at a free port.
// It trusts a CA that is made only for them. While no manager runs, the calls fail, as while an operator is down.
type Webhooks struct {
	cp             *ControlPlane
	authority      *authority
	folder         string
	port           int
	configurations []client.Object
	converted      []string // the names of CustomResourceDefinitions
}

// NewWebhooks installs webhooks for one test, by [ControlPlane.InstallWebhooks], and removes them when the test ends, after the cleanups that
// the test registers later. The test fails if they cannot be installed.
func NewWebhooks(t testing.TB, cp *ControlPlane, options WebhookOptions) *Webhooks {
	t.Helper()
	webhooks, err := cp.InstallWebhooks(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Uninstall(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return webhooks
}

// InstallWebhooks creates or updates the configurations of admission webhooks and the CustomResourceDefinitions in these files and folders.
// In place of a Service, they get the address of a manager on this machine and its CA. It returns when the API server calls the admission
// webhooks. From then on the API server refuses requests whose webhooks do not answer, unless their failurePolicy is Ignore. Start the
// manager with [Webhooks.Options].
//
// If the API server has served a CustomResourceDefinition before, it may start to call the conversion webhook a moment later. Until then it
// converts objects only by changing apiVersion. So wait for a converted field before you write an object in another version than the
// storage version.
//
// It returns an error if a path does not exist, or has none of the objects that it is for. Configurations apply to all namespaces. So if a
// test shares a control plane with others, its configurations should have kinds of its own, or select its namespace.
func (cp *ControlPlane) InstallWebhooks(ctx context.Context, options WebhookOptions) (*Webhooks, error) {
	w := &Webhooks{cp: cp}
	if err := w.install(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("install webhooks: %w", err), w.Uninstall(context.WithoutCancel(ctx)))
	}
	return w, nil
}

func (w *Webhooks) install(ctx context.Context, options WebhookOptions) error {
	var err error
	if w.port, err = freePort(); err != nil {
		return err
	}
	if w.authority, err = newAuthority(); err != nil {
		return err
	}
	if w.folder, err = os.MkdirTemp(w.cp.processes.file(""), "webhooks-"); err != nil {
		return err
	}
	var ca []byte
	if !options.WithoutCertificate {
		ca = w.authority.bundle()
		if err := w.ReplaceCertificate(Certificate{}); err != nil {
			return err
		}
	}
	configurations, err := w.read(options.Paths, ca)
	if err != nil {
		return err
	}
	if len(options.CRDs) > 0 {
		if err := w.installCRDs(options.CRDs, ca); err != nil {
			return err
		}
		if err := w.cp.showNewKinds(ctx); err != nil {
			return err
		}
	}
	for _, configuration := range configurations {
		w.configurations = append(w.configurations, configuration)
		if err := createOrUpdate(ctx, w.cp.client, configuration); err != nil {
			return err
		}
	}
	return w.waitObserved(ctx)
}

// installCRDs installs CustomResourceDefinitions, with the conversion webhook if they have several versions.
func (w *Webhooks) installCRDs(paths []string, ca []byte) error {
	return w.cp.installChangedCRDs(paths, func(crd *apiextensionsv1.CustomResourceDefinition) error {
		if len(crd.Spec.Versions) > 1 && !isUnconverted(crd) {
			convertBy(crd, w.url(), ca)
			w.converted = append(w.converted, crd.Name)
		}
		return nil
	})
}

// read returns the configurations of admission webhooks in these files and folders. It sets the address and the CA of the webhooks in them.
func (w *Webhooks) read(paths []string, ca []byte) ([]client.Object, error) {
	var all []client.Object
	for _, path := range paths {
		files := envtest.WebhookInstallOptions{
			Paths: []string{path}, LocalServingHost: loopback, LocalServingPort: w.port, LocalServingHostExternalName: localhost,
		}
		err := files.PrepWithoutInstalling() // this also makes a CA of its own, which is replaced below: its certificate could not be rotated
		if err = errors.Join(err, files.Cleanup()); err != nil {
			return nil, fmt.Errorf("read the webhook configurations in %s: %w", path, err)
		}
		files.LocalServingCAData = ca
		if err := files.ModifyWebhookDefinitions(); err != nil {
			return nil, err
		}
		for _, configuration := range files.MutatingWebhooks {
			all = append(all, configuration)
		}
		for _, configuration := range files.ValidatingWebhooks {
			all = append(all, configuration)
		}
		if len(files.MutatingWebhooks)+len(files.ValidatingWebhooks) == 0 {
			return nil, fmt.Errorf("no configuration of an admission webhook in %s: name the folder that has the YAML files themselves, "+
				"since subfolders are not read", path)
		}
	}
	return all, nil
}

// createOrUpdate creates an object. If an object of this name exists, it updates that one.
func createOrUpdate(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return err
	}
	obj.SetResourceVersion(live.GetResourceVersion())
	return c.Update(ctx, obj)
}

// Options returns the options of the webhook server that the API server calls, for ctrl.Options:
//
//	WebhookServer: webhook.NewServer(webhooks.Options())
func (w *Webhooks) Options() webhook.Options {
	return webhook.Options{Host: loopback, Port: w.port, CertDir: w.folder}
}

// Uninstall deletes the configurations, and returns when the API server calls none of the webhooks any more. CustomResourceDefinitions stay,
// with the conversion strategy None. It may be called twice.
func (w *Webhooks) Uninstall(ctx context.Context) error {
	var failed []error
	for _, configuration := range w.configurations {
		failed = append(failed, client.IgnoreNotFound(w.cp.client.Delete(ctx, configuration)))
	}
	for _, name := range w.converted {
		failed = append(failed, endConversion(ctx, w.cp.client, name, w.url()))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("remove webhooks: %w", err)
	}
	if err := w.waitObserved(ctx); err != nil {
		return err
	}
	w.configurations, w.converted = nil, nil
	if w.folder == "" {
		return nil
	}
	return os.RemoveAll(w.folder)
}

// url returns the address of the conversion webhook.
func (w *Webhooks) url() string { return fmt.Sprintf("https://%s:%d/convert", localhost, w.port) }

// waitObserved waits until the API server acts on all changes of the configurations.
func (w *Webhooks) waitObserved(ctx context.Context) error {
	if len(w.configurations) == 0 {
		return nil
	}
	return w.cp.waitConfigurationsObserved(ctx, w.url(), filepath.Base(w.folder))
}

// ReplaceCertificate makes a new key and a new serving certificate, and replaces the files tls.crt and tls.key in the CertDir of
// [Webhooks.Options]. A running webhook server uses the new certificate for new connections as soon as it has read the files. Connections
// that the API server has open stay open, as in a cluster. So to test that the API server refuses a certificate, call ReplaceCertificate
// before the manager starts.
func (w *Webhooks) ReplaceCertificate(certificate Certificate) error {
	if err := certificate.write(w.folder, w.authority); err != nil {
		return fmt.Errorf("replace the serving certificate of the webhooks: %w", err)
	}
	return nil
}
