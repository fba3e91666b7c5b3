def main():
    args = asked()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device here: --device cpu goes through the steps and measures nothing")
    torch.manual_seed(0)
    try:
        rows = run(args)
    except torch.OutOfMemoryError as err:
        sys.exit(f"out of memory before the steps were through, which says nothing of the plan where others hold memory of the GPU: {err}")
    status = 0
    if args.device == "cuda":
        status = judged(rows)
    else:
        print(line(f"{JOB['model']}, {JOB['what']}: {args.steps} steps on the CPU, nothing is measured"))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"model": JOB["model"], "status": status, "bound": JOB["bound"], "torch": torch.__version__, "transformers": transformers.__version__, "predicted": JOB["devices"], "measured": rows}, file)
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    main()
