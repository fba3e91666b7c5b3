// Package diffusers reads the components of diffusion pipelines in the form of diffusers 0.42. It
// reads a component's config.json, whose _class_name names its class, and a pipeline's folder with
// model_index.json.
package diffusers
