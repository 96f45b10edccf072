# One fit of ranger, measured as turns.py measures the others: Rscript ranger.R TASK
suppressMessages({
  library(ranger)
  library(jsonlite)
})
task <- fromJSON(commandArgs(TRUE)[1])
is_classes <- task$classes > 0

# An array of i4 or f4 as NumPy writes it, a matrix row by row.
npy <- function(name) {
  file <- file(file.path(task$data, paste0(name, ".npy")), "rb")
  on.exit(close(file))
  readBin(file, "raw", 8)
  n_header <- readBin(file, "integer", 1, size = 2, signed = FALSE, endian = "little")
  header <- rawToChar(readBin(file, "raw", n_header))
  shape <- sub(".*'shape': \\(([^)]*)\\).*", "\\1", header)
  shape <- as.integer(regmatches(shape, gregexpr("[0-9]+", shape))[[1]])
  type <- if (grepl("<f4", header)) "numeric" else "integer"
  values <- readBin(file, type, prod(shape), size = 4)
  if (length(shape) == 1) return(values)
  values <- matrix(values, shape[1], shape[2], byrow = TRUE)
  colnames(values) <- paste0("f", seq_len(shape[2]))
  values
}

# Resident memory in MB: VmRSS now, VmHWM the highest.
status <- function(name) {
  lines <- readLines("/proc/self/status")
  as.numeric(gsub("[^0-9]", "", lines[startsWith(lines, name)])) * 1024 / 1e6
}

restart <- function() {
  invisible(gc())
  cat("5", file = "/proc/self/clear_refs")
  status("VmRSS")
}

busy_seconds <- function() {
  ticks <- as.numeric(strsplit(sub("cpu +", "", readLines("/proc/stat", 1)), " ")[[1]])
  sum(ticks[c(1:3, 6:8)]) / 100
}

cpu_seconds <- function() sum(proc.time()[c("user.self", "sys.self")])

seconds <- function(call) {
  start <- Sys.time()
  call()
  as.numeric(Sys.time() - start, units = "secs")
}

median_of <- function(call, least, most, limit) {
  times <- c()
  while (length(times) < least || (length(times) < most && sum(times) < limit)) {
    times <- c(times, seconds(call))
  }
  median(times)
}

fit <- function(X, y, trees) {
  ranger(
    x = X, y = y, num.trees = trees, mtry = task$tried, max.depth = task$depth,
    min.node.size = 1, probability = is_classes, oob.error = FALSE, num.threads = task$threads,
    seed = task$seed, verbose = FALSE
  )
}

ask <- function(model, X, threads = task$threads) {
  predict(model, X, num.threads = threads, verbose = FALSE)$predictions
}

X <- npy("X_train")
y <- npy("y_train")
if (is_classes) y <- factor(y, levels = seq_len(task$classes) - 1)
few <- seq_len(min(nrow(X), 40000))
small <- function() {
  model <- fit(X[few, ], y[few], 2 * task$threads)
  invisible(ask(model, X[1:9, ]))
}
first <- seconds(small)
out <- list(first_call_seconds = first - seconds(small))

before <- restart()
busy <- busy_seconds()
cpu <- cpu_seconds()
grow <- function() {
  model <<- NULL
  model <<- fit(X, y, task$trees)
}
cat("fit begins\n")
times <- seconds(grow)
out$peak_mb <- status("VmHWM") - before
out$peak_exact <- TRUE
while (length(times) < task$fits) times <- c(times, seconds(grow))
cat("fit ends\n")
out$fit_seconds <- median(times)
cpu <- cpu_seconds() - cpu
out$fit_cpu_seconds <- cpu / length(times)
out$other_cpu_seconds <- (busy_seconds() - busy - cpu) / length(times)

X <- npy("X_test")
invisible(ask(model, head(X, 1000)))
before <- restart()
out$predict_seconds <- median_of(function() ask(model, X), 3, 25, 2)
out$predict_peak_mb <- status("VmHWM") - before
found <- ask(model, X)
if (is_classes) found <- found[, as.character(seq_len(task$classes) - 1)]
writeBin(as.numeric(found), task$out)

i <- 0
one_row_ms <- function(threads) {
  1000 * median_of(function() {
    row <- X[i %% nrow(X) + 1, , drop = FALSE]
    i <<- i + 1
    ask(model, row, threads)
  }, 5, 100, 10)
}
out$one_row_ms <- one_row_ms(task$threads)
out$one_row_one_thread_ms <- one_row_ms(1)
file <- tempfile()
saveRDS(model, file, compress = FALSE)
out$model_mb <- file.size(file) / 1e6
cat(toJSON(out, auto_unbox = TRUE, digits = 8), "\n", sep = "")
