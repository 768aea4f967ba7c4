package webhook

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
)

// Hook is one webhook of a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration, with the defaults of the API server.
type Hook struct {
	Name     string
	Mutating bool
	Rules    []admissionregistrationv1.RuleWithOperations

	Equivalent bool            // a request in another version of the kind matches too
	Namespaces labels.Selector // selects the namespaces of the objects
	Objects    labels.Selector // selects the objects
	Ignore     bool            // if the webhook cannot be called, the write goes on without it
	Reinvoke   bool            // the webhook is called again if a later webhook changes the object
	DryRun     bool            // the webhook may be called in a dry run

	address string
	timeout string
}

// Read returns the webhooks of the configurations in YAML or JSON files, in the order in which the API server calls them. If a path is a
// folder, it reads the files directly in it. It ignores other documents. If a path has no configuration, the error says what to do.
func Read(paths ...string) (all []Hook, err error) {
	for _, path := range paths {
		files := []string{path}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("webhook configurations: %w", err)
		}
		if info.IsDir() {
			if files, err = filesIn(path); err != nil {
				return nil, fmt.Errorf("webhook configurations: %w", err)
			}
		}
		before := len(all)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("webhook configurations: %w", err)
			}
			found, err := parse(content)
			if err != nil {
				return nil, fmt.Errorf("webhook configurations: %s: %w", file, err)
			}
			all = append(all, found...)
		}
		if len(all) == before {
			return nil, fmt.Errorf("no webhook in %s: name the file that controller-gen writes, such as config/webhook/manifests.yaml, relative to the test", path)
		}
	}
	return all, nil
}

// filesIn returns the files of YAML and JSON that lie directly in a folder.
func filesIn(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	return files, err
}

// parse returns the webhooks of the configurations in documents of YAML or JSON.
func parse(content []byte) ([]Hook, error) {
	var mutating []admissionregistrationv1.MutatingWebhookConfiguration
	var validating []admissionregistrationv1.ValidatingWebhookConfiguration
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var kind metav1.TypeMeta
		if err := errors.Join(err, yaml.Unmarshal(document, &kind)); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "MutatingWebhookConfiguration":
			mutating = append(mutating, admissionregistrationv1.MutatingWebhookConfiguration{})
			err = yaml.Unmarshal(document, &mutating[len(mutating)-1])
		case "ValidatingWebhookConfiguration":
			validating = append(validating, admissionregistrationv1.ValidatingWebhookConfiguration{})
			err = yaml.Unmarshal(document, &validating[len(validating)-1])
		}
		if err != nil {
			return nil, err
		}
	}
	return hooksOf(mutating, validating)
}

// hooksOf returns the webhooks of configurations, in the order in which the API server calls them.
func hooksOf(mutating []admissionregistrationv1.MutatingWebhookConfiguration, validating []admissionregistrationv1.ValidatingWebhookConfiguration) ([]Hook, error) {
	slices.SortStableFunc(mutating, func(a, b admissionregistrationv1.MutatingWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	slices.SortStableFunc(validating, func(a, b admissionregistrationv1.ValidatingWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	var all []Hook
	for _, configuration := range mutating {
		for i := range configuration.Webhooks {
			h := &configuration.Webhooks[i]
			made, err := newHook(&admissionregistrationv1.ValidatingWebhook{
				Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy, NamespaceSelector: h.NamespaceSelector,
				ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects, TimeoutSeconds: h.TimeoutSeconds, MatchConditions: h.MatchConditions,
			})
			if err != nil {
				return nil, err
			}
			made.Mutating = true
			made.Reinvoke = ptr.Deref(h.ReinvocationPolicy, "") == admissionregistrationv1.IfNeededReinvocationPolicy
			all = append(all, made)
		}
	}
	for _, configuration := range validating {
		for i := range configuration.Webhooks {
			made, err := newHook(&configuration.Webhooks[i])
			if err != nil {
				return nil, err
			}
			all = append(all, made)
		}
	}
	return all, nil
}

func newHook(h *admissionregistrationv1.ValidatingWebhook) (Hook, error) {
	if len(h.MatchConditions) > 0 {
		return Hook{}, fmt.Errorf("webhook %s: the server in memory does not know matchConditions: give the test a copy of the configuration without them", h.Name)
	}
	namespaces, err := selectorOf(h.NamespaceSelector)
	if err != nil {
		return Hook{}, fmt.Errorf("webhook %s: namespaceSelector: %w", h.Name, err)
	}
	objects, err := selectorOf(h.ObjectSelector)
	if err != nil {
		return Hook{}, fmt.Errorf("webhook %s: objectSelector: %w", h.Name, err)
	}
	effects := ptr.Deref(h.SideEffects, "")
	made := Hook{
		Name: h.Name, Rules: h.Rules, Namespaces: namespaces, Objects: objects,
		Equivalent: ptr.Deref(h.MatchPolicy, admissionregistrationv1.Equivalent) == admissionregistrationv1.Equivalent,
		Ignore:     ptr.Deref(h.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore,
		DryRun:     effects == admissionregistrationv1.SideEffectClassNone || effects == admissionregistrationv1.SideEffectClassNoneOnDryRun,
		timeout:    fmt.Sprintf("%ds", ptr.Deref(h.TimeoutSeconds, 10)),
	}
	switch config := h.ClientConfig; {
	case config.URL != nil:
		made.address = *config.URL
	case config.Service != nil:
		made.address = ServiceAddress(config.Service.Name, config.Service.Namespace, config.Service.Port, config.Service.Path)
	default:
		return Hook{}, fmt.Errorf("webhook %s: its clientConfig has neither service nor url: give it one", h.Name)
	}
	return made, nil
}

// ServiceAddress returns the address of a webhook behind a Service.
func ServiceAddress(name, namespace string, port *int32, path *string) string {
	return fmt.Sprintf("https://%s.%s.svc:%d/%s", name, namespace, ptr.Deref(port, 443), strings.TrimPrefix(ptr.Deref(path, ""), "/"))
}

// selectorOf returns the selector. If it is not set, the result selects everything.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
